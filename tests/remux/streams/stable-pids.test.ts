import assert from "node:assert/strict";
import { test } from "node:test";
import { buildPat, buildPmt, PAT_PID, type PmtStream, packetsOfSection } from "../../../src/media/psi.ts";
import { pidAt } from "../../../src/media/ts-packet.ts";
import { TableReader, type TsTables } from "../../../src/media/ts-tables.ts";
import { StablePids } from "../../../src/remux/streams/stable-pids.ts";
import type { TsEntry } from "../../../src/remux/ts-join.ts";

const [H264, HEVC, AAC, AC3] = [0x1b, 0x24, 15, 129];

/** The PAT and PMT of a programme as packets. */
function tablePackets(number: number, pmtPid: number, pcrPid: number, streams: readonly PmtStream[]) {
  const pmt = buildPmt({ programme: number, version: 0, pcrPid, streams });
  return Buffer.concat([
    packetsOfSection(buildPat({ number, pmtPid }), PAT_PID),
    packetsOfSection(pmt, pmtPid),
  ]);
}

function tablesOf(packets: Uint8Array): TsTables {
  const reader = new TableReader();
  for (let at = 0; at < packets.length; at += 188) reader.push(packets, at);
  return reader.tables(true)!;
}

/** Passes tables and one packet for each PID, and returns the tables and PIDs as written. */
function passed(stable: StablePids, source: Uint8Array, pids: readonly number[], version = 1) {
  const packets = Buffer.concat([
    source,
    ...pids.map((pid) =>
      Uint8Array.from({ length: 188 }, (_, i) => [0x47, pid >> 8, pid & 255, 0x10][i] ?? 0),
    ),
  ]);
  const entry = { tables: tablesOf(source), version } as TsEntry;
  stable.apply(entry, packets);
  const head = packets.subarray(0, source.length);
  const rest = pids.map((_, i) => pidAt(packets, source.length + 188 * i));
  return { tables: tablesOf(head), pids: rest };
}

const stream = (streamType: number, pid: number, language = "und") => ({ streamType, pid, language });

test("StablePids: the first source is unchanged; languages decide among streams with one codec", () => {
  const stable = new StablePids();
  const one = tablePackets(7, 0x100, 0x111, [
    stream(H264, 0x111),
    stream(AAC, 0x121, "eng"),
    stream(AAC, 0x122, "fre"),
  ]);
  const first = passed(stable, one, [0x111, 0x121, 0x122]);
  assert.deepEqual(first.pids, [0x111, 0x121, 0x122]);
  assert.deepEqual([first.tables.pmtPid, first.tables.pmt.programme], [0x100, 7]);
  const two = tablePackets(1, 0x111, 0x100, [
    stream(AAC, 0x101, "fre"),
    stream(AAC, 0x121, "ger"),
    stream(AAC, 0x122, "eng"),
    stream(H264, 0x100),
  ]);
  const second = passed(stable, two, [0x100, 0x101, 0x121, 0x122]);
  // The German sound is new, and its own PID is taken.
  const [german] = second.pids.slice(2, 3);
  assert.deepEqual(second.pids, [0x111, 0x122, german, 0x121]);
  assert.ok(![0x100, 0x111, 0x121, 0x122].includes(german!), String(german));
  const { pmt, pmtPid } = second.tables;
  assert.deepEqual([pmtPid, pmt.programme, pmt.pcrPid, pmt.version], [0x100, 7, 0x111, 1]);
  assert.deepEqual(
    pmt.streams.map(({ pid }) => pid),
    [0x122, german, 0x121, 0x111],
  );
});

test("StablePids: a stream with another codec gets a PID of its own, and the old one is used again later", () => {
  const stable = new StablePids();
  const one = tablePackets(1, 0x1000, 0x100, [stream(H264, 0x100), stream(AAC, 0x101)]);
  passed(stable, one, []);
  const two = tablePackets(1, 0x1000, 0x100, [stream(HEVC, 0x100), stream(AC3, 0x101)]);
  const entryOf = (packets: Uint8Array) => ({ tables: tablesOf(packets), version: 1 }) as TsEntry;
  assert.deepEqual(
    [one, two].map((packets) => stable.lacksSoundOf(entryOf(packets))),
    [false, true],
  );
  const other = passed(stable, two, [0x100, 0x101]);
  assert.equal(new Set([...other.pids, 0x100, 0x101, 0x1000]).size, 5);
  assert.equal(other.tables.pmt.pcrPid, other.pids[0]);
  const three = tablePackets(1, 0x1000, 0x200, [stream(AAC, 0x201), stream(H264, 0x200)]);
  assert.deepEqual(passed(stable, three, [0x200, 0x201]).pids, [0x100, 0x101]);
  assert.deepEqual(passed(stable, two, [0x100, 0x101]).pids, other.pids);
});

test("StablePids: a clock with a PID of its own, and tables that change within a source", () => {
  const stable = new StablePids();
  const one = tablePackets(1, 0x1000, 0x1f0, [stream(H264, 0x100), stream(AAC, 0x101)]);
  assert.deepEqual(passed(stable, one, [0x1f0, 0x100]).pids, [0x1f0, 0x100]);
  const more = tablePackets(1, 0x1000, 0x1f0, [stream(H264, 0x100), stream(AAC, 0x102), stream(AAC, 0x101)]);
  const changed = passed(stable, more, [0x1f0, 0x100, 0x101, 0x102]);
  assert.deepEqual(changed.pids, [0x1f0, 0x100, 0x101, 0x102]);
  const two = tablePackets(1, 0x1000, 0x1f1, [stream(H264, 0x1f0), stream(AAC, 0x101)]);
  assert.deepEqual(passed(stable, two, [0x1f1, 0x1f0, 0x101]).pids, [0x1f0, 0x100, 0x101]);
});

test("StablePids: sources without end, each with other streams, keep their PIDs apart", () => {
  const stable = new StablePids();
  for (let round = 0; round < 50; round++) {
    const sounds = Array.from({ length: 40 }, (_, i) => stream(AAC, 0x100 + i, `${round}${i}`.slice(0, 3)));
    const source = tablePackets(1, 0x1000, 0xff, [stream(H264, 0xff), ...sounds]);
    const pids = [0xff, ...sounds.map(({ pid }) => pid)];
    const written = passed(stable, source, pids, round).pids;
    assert.equal(new Set([...written, 0x1000]).size, 42);
  }
});

test("StablePids.learn: continues the PIDs of media that was written before", () => {
  const stable = new StablePids();
  stable.learn(tablePackets(3, 0x20, 0x31, [stream(H264, 0x31), stream(AAC, 0x34)]));
  const source = tablePackets(1, 0x1000, 0x100, [stream(H264, 0x100), stream(AAC, 0x101)]);
  const { tables, pids } = passed(stable, source, [0x100, 0x101]);
  assert.deepEqual([pids, tables.pmtPid, tables.pmt.programme], [[0x31, 0x34], 0x20, 3]);
});
