import assert from "node:assert/strict";
import { test } from "node:test";
import { latin1Bytes } from "../../src/base/bytes.ts";
import { DecodeError } from "../../src/base/errors.ts";
import {
  buildPat,
  buildPmt,
  crc32Mpeg,
  packetsOfSection,
  parsePat,
  parsePmt,
  reorderPmt,
} from "../../src/media/psi.ts";
import { SectionReader } from "../../src/media/section-reader.ts";
import { streamsOf } from "../../src/media/ts-programme.ts";
import { TableReader } from "../../src/media/ts-tables.ts";

const STREAMS = Array.from({ length: 40 }, (_, i) => ({
  streamType: 0x81,
  pid: 256 + i,
  registration: "AC-3",
  language: "deu",
}));
const LARGE = buildPmt({ programme: 7, version: 9, pcrPid: 256, streams: STREAMS });

function payloads(packets: Uint8Array): Uint8Array[] {
  return Array.from({ length: packets.length / 188 }, (_, i) => packets.subarray(i * 188 + 4, (i + 1) * 188));
}

test("crc32Mpeg gives the check value of CRC-32/MPEG-2", () => {
  assert.equal(crc32Mpeg(latin1Bytes("123456789"), 0, 9), 0x0376e6e7);
});

test("parsePat and parsePmt read what buildPat and buildPmt write", () => {
  assert.deepEqual(parsePat(buildPat({ number: 7, pmtPid: 0x1abc })), [{ number: 7, pmtPid: 0x1abc }]);
  const pmt = parsePmt(LARGE);
  assert.deepEqual([pmt.programme, pmt.version, pmt.pcrPid, pmt.streams.length], [7, 9, 256, 40]);
  assert.deepEqual(pmt.streams[39], {
    streamType: 0x81,
    pid: 295,
    registration: "AC-3",
    language: "deu",
    tags: [5, 10],
  });
});

test("parsePmt rejects a wrong checksum, table and length", () => {
  for (const at of [0, 2, 20]) {
    const broken = LARGE.slice();
    broken[at]! ^= 1;
    assert.throws(() => parsePmt(broken), DecodeError);
  }
  assert.throws(() => parsePmt(LARGE.subarray(0, 50)), DecodeError);
});

test("SectionReader assembles a table from several packets, and drops a table with a lost packet", () => {
  const parts = payloads(packetsOfSection(LARGE, 0x1000));
  assert.ok(parts.length >= 3);
  const reader = new SectionReader();
  const all = parts.flatMap((part, i) => reader.push(part, i === 0, i & 15));
  assert.deepEqual(all, [LARGE]);
  const gap = new SectionReader();
  assert.deepEqual(
    parts.flatMap((part, i) => (i === 1 ? [] : gap.push(part, i === 0, i & 15))),
    [],
  );
  assert.deepEqual(
    parts.flatMap((part, i) => gap.push(part, i === 0, (i + 3) & 15)),
    [LARGE],
  );
});

test("SectionReader reads two sections of one packet, and a section that ends where the next one begins", () => {
  const [a, b] = [buildPat({ number: 1, pmtPid: 100 }), buildPat({ number: 2, pmtPid: 200 })];
  const both = new Uint8Array(184).fill(0xff);
  both.set([0, ...a, ...b]);
  assert.deepEqual(new SectionReader().push(both, true, 0), [a, b]);
  const reader = new SectionReader();
  const start = new Uint8Array(184).fill(0);
  start[0] = 184 - 1 - 10;
  start.set(a.subarray(0, 10), 174);
  assert.deepEqual(reader.push(start, true, 4), []);
  const rest = new Uint8Array(184).fill(0xff);
  rest.set([a.length - 10, ...a.subarray(10), ...b]);
  assert.deepEqual(reader.push(rest, true, 5), [a, b]);
});

test("reorderPmt puts the given streams first and keeps the others", () => {
  const pids = parsePmt(reorderPmt(LARGE, [290, 280])).streams.map(({ pid }) => pid);
  assert.deepEqual(pids.slice(0, 3), [290, 280, 256]);
  assert.equal(new Set(pids).size, 40);
});

test("streamsOf identifies codecs by type, registration and DVB tag", () => {
  const streams = [
    { streamType: 0x1b, pid: 1 },
    { streamType: 0x24, pid: 2 },
    { streamType: 6, pid: 3, tags: [0x6a], language: "fra" },
    { streamType: 6, pid: 4, registration: "EAC3" },
    { streamType: 6, pid: 5, tags: [0x59] },
    { streamType: 6, pid: 6, tags: [0x52] },
    { streamType: 0x99, pid: 7 },
  ];
  assert.deepEqual(
    streamsOf({ programme: 1, version: 0, pcrPid: 1, streams }).map(({ kind, codec }) => `${kind} ${codec}`),
    [
      "video h264",
      "video hevc",
      "audio ac3",
      "audio eac3",
      "subtitle dvb_subtitle",
      "data private",
      "data type 153",
    ],
  );
});

test("TableReader selects the first programme with video in a multiplex", () => {
  const pat = packetsOfSection(buildPat({ number: 1, pmtPid: 100 }), 0).slice();
  const two = new Uint8Array([0, 0xb0, 17, 0, 1, 0xc1, 0, 0, 0, 1, 0xe0, 100, 0, 2, 0xe0, 200, 0, 0, 0, 0]);
  const crc = crc32Mpeg(two, 0, 16);
  two.set([crc >>> 24, (crc >>> 16) & 255, (crc >>> 8) & 255, crc & 255], 16);
  pat.fill(0xff, 5);
  pat.set(two, 5);
  const reader = new TableReader();
  assert.ok(reader.push(pat, 0));
  const radio = buildPmt({ programme: 1, version: 0, pcrPid: 101, streams: [{ streamType: 3, pid: 101 }] });
  const video = buildPmt({
    programme: 2,
    version: 0,
    pcrPid: 201,
    streams: [{ streamType: 0x1b, pid: 201 }],
  });
  reader.push(packetsOfSection(radio, 100), 0);
  assert.equal(reader.tables(false), undefined);
  assert.equal(reader.tables(true)?.pmtPid, 100);
  reader.push(packetsOfSection(video, 200), 0);
  assert.equal(reader.tables(false)?.pmtPid, 200);
});
