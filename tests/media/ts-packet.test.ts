import assert from "node:assert/strict";
import { test } from "node:test";
import { DecodeError } from "../../src/base/errors.ts";
import { PES_HEADER_PTS, PES_HEADER_PTS_DTS, readPesHeader, writePesHeader } from "../../src/media/pes.ts";
import { TICKS_MODULUS } from "../../src/media/timestamps.ts";
import { payloadStartAt, readTsPacket, writePcrPacket, writeTsHeader } from "../../src/media/ts-packet.ts";
import { alignPackets, detectLayout } from "../../src/media/ts-sync.ts";

test("writePcrPacket is read by readTsPacket, over all 33 bits", () => {
  for (const ticks of [0, 1, 0x1ffff, 0x2000001, 2 ** 32, TICKS_MODULUS - 1]) {
    const bytes = new Uint8Array(188);
    writePcrPacket(bytes, 0, 0x1ffe, 21, ticks);
    const packet = readTsPacket(bytes, 0);
    assert.deepEqual(
      [packet.pid, packet.pcr, packet.continuity, packet.hasPayload],
      [0x1ffe, ticks, 5, false],
    );
    assert.equal(payloadStartAt(bytes, 0), 188);
  }
});

test("readTsPacket rejects a cut packet, a wrong sync byte and a field too long", () => {
  const bytes = new Uint8Array(188);
  assert.throws(() => readTsPacket(bytes.subarray(1), 0), DecodeError);
  assert.throws(() => readTsPacket(bytes, 0), DecodeError);
  writeTsHeader(bytes, 0, 256, true, true, 0);
  bytes[4] = 184;
  assert.throws(() => readTsPacket(bytes, 0), DecodeError);
});

test("writePesHeader is read by readPesHeader, over all 33 bits", () => {
  for (const pts of [0, 2 ** 30, 2 ** 30 - 1, 2 ** 32 + 12345, TICKS_MODULUS - 1]) {
    const bytes = new Uint8Array(32);
    assert.equal(writePesHeader(bytes, 0, 0xe0, 100, pts, pts), PES_HEADER_PTS);
    assert.deepEqual(readPesHeader(bytes, 0), {
      streamId: 0xe0,
      packetBytes: 108,
      pts,
      dts: pts,
      payloadAt: 14,
    });
    assert.equal(writePesHeader(bytes, 0, 0xe0, 70_000, pts, (pts + 5) % TICKS_MODULUS), PES_HEADER_PTS_DTS);
    const read = readPesHeader(bytes, 0);
    assert.deepEqual([read.packetBytes, read.pts, read.dts], [0, pts, (pts + 5) % TICKS_MODULUS]);
  }
});

test("readPesHeader rejects what is cut or begins otherwise, and takes streams without times", () => {
  const bytes = new Uint8Array(20);
  writePesHeader(bytes, 0, 0xc0, 1, 5, 5);
  assert.throws(() => readPesHeader(bytes, 0, 12), DecodeError);
  assert.throws(() => readPesHeader(bytes, 1), DecodeError);
  bytes[3] = 0xbe;
  assert.deepEqual(readPesHeader(bytes, 0).payloadAt, 6);
});

test("detectLayout tells 188, 192 and 204 byte packets, from any point on", () => {
  for (const stride of [188, 192, 204]) {
    const bytes = new Uint8Array(stride * 12);
    for (let i = 0; i < 12; i++) bytes[i * stride + 30] = 0x47;
    assert.deepEqual(detectLayout(bytes), { stride, at: 30 });
  }
  assert.equal(detectLayout(new Uint8Array(5000)), undefined);
});

test("alignPackets passes over garbage and says where packets began", () => {
  const bytes = new Uint8Array(188 * 8 + 50).fill(1);
  for (let i = 0; i < 4; i++) bytes[i * 188] = 0x47;
  for (let i = 0; i < 4; i++) bytes[4 * 188 + 50 + i * 188] = 0x47;
  const aligned = alignPackets(bytes, 188, true, true);
  assert.deepEqual([...aligned.starts], [0, 188, 376, 564, 802, 990, 1178, 1366]);
  assert.deepEqual([aligned.skipped, aligned.used, aligned.packets.length], [50, bytes.length, 8 * 188]);
});
