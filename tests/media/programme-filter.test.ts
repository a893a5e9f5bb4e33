import assert from "node:assert/strict";
import { test } from "node:test";
import { concatBytes, writeU32 } from "../../src/base/bytes.ts";
import { ProgrammeFilter } from "../../src/media/programme-filter.ts";
import { buildPat, buildPmt, crc32Mpeg, PAT_PID, packetsOfSection } from "../../src/media/psi.ts";
import { pidAt, TS_PACKET_BYTES, writeTsHeader } from "../../src/media/ts-packet.ts";
import { TableReader } from "../../src/media/ts-tables.ts";

const PMTS = [
  { programme: 1, version: 0, pcrPid: 0x100, streams: [{ streamType: 27, pid: 0x100 }] },
  { programme: 2, version: 0, pcrPid: 0x200, streams: [{ streamType: 27, pid: 0x200 }] },
] as const;
const PAT = patOfBoth();
const TABLES = [
  packetsOfSection(PAT, PAT_PID),
  packetsOfSection(buildPmt(PMTS[0]), 0x20),
  packetsOfSection(buildPmt(PMTS[1]), 0x30),
];

/** A table with two programmes. */
function patOfBoth(): Uint8Array {
  const [one, two] = [buildPat({ number: 1, pmtPid: 0x20 }), buildPat({ number: 2, pmtPid: 0x30 })];
  const both = concatBytes([one.subarray(0, 12), two.subarray(8)]);
  both[2]! += 4;
  writeU32(both, 16, crc32Mpeg(both, 0, 16));
  return both;
}

function packetOf(pid: number): Uint8Array {
  const packet = new Uint8Array(TS_PACKET_BYTES).fill(0xff);
  writeTsHeader(packet, 0, pid, true, false, 0);
  return packet;
}

const pidsOf = (packets: Uint8Array) =>
  Array.from({ length: packets.length / TS_PACKET_BYTES }, (_, index) =>
    pidAt(packets, index * TS_PACKET_BYTES),
  );

test("ProgrammeFilter: passes the packets of one programme, with a PAT that lists this one only", () => {
  const filter = new ProgrammeFilter(2);
  const packets = concatBytes([
    packetOf(0x200),
    ...TABLES,
    packetOf(0x100),
    packetOf(0x200),
    packetOf(0x1ff),
  ]);
  const own = filter.push(packets);
  assert.deepEqual(pidsOf(own), [0, 0x30, 0x200]);
  const reader = new TableReader();
  for (let at = 0; at < own.length; at += TS_PACKET_BYTES)
    if (reader.wants(pidAt(own, at))) reader.push(own, at);
  assert.equal(reader.programmes, 1);
  assert.equal(reader.tables(false)?.pmt.programme, 2);
  // PATs have consecutive counters.
  const again = filter.push(concatBytes(TABLES));
  assert.equal(again[3]! & 15, (own[3]! + 1) & 15);
});

test("ProgrammeFilter: a programme that is missing gives nothing, and one that moves is followed", () => {
  const filter = new ProgrammeFilter(7);
  assert.equal(filter.push(concatBytes([...TABLES, packetOf(0x100)])).length, 0);
  assert.deepEqual(filter.programmes, [1, 2]);
  const moved = { ...PMTS[0], programme: 7 };
  const tables = [
    packetsOfSection(buildPat({ number: 7, pmtPid: 0x20 }), PAT_PID),
    packetsOfSection(buildPmt(moved), 0x20),
  ];
  assert.deepEqual(
    pidsOf(filter.push(concatBytes([...tables, packetOf(0x100), packetOf(0x200)]))),
    [0, 0x20, 0x100],
  );
});

test("ProgrammeFilter: damaged tables change nothing", () => {
  const filter = new ProgrammeFilter(1);
  filter.push(concatBytes(TABLES));
  const damaged = TABLES.map((packets) => packets.map((byte, index) => (index === 20 ? byte ^ 0xff : byte)));
  filter.push(concatBytes(damaged));
  assert.deepEqual(pidsOf(filter.push(packetOf(0x100))), [0x100]);
});
