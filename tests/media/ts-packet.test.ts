import assert from "node:assert/strict";
import { test } from "node:test";
import { DecodeError } from "../../src/base/errors.ts";
import { readPesHeader, writePesHeader } from "../../src/media/pes.ts";
import { TICKS_MODULUS } from "../../src/media/timestamps.ts";
import {
  isRandomAccessAt,
  payloadStartAt,
  writePcrPacket,
  writeTsHeader,
} from "../../src/media/ts-packet.ts";
import { alignPackets, detectLayout } from "../../src/media/ts-sync.ts";
import { readTsPacket } from "./read-ts-packet.ts";

test("writePcrPacket writes PID, counter and all 33 bits of the PCR", () => {
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

test("isRandomAccessAt reads the indicator only from an adaptation field", () => {
  const bytes = new Uint8Array(188).fill(0xff);
  writeTsHeader(bytes, 0, 256, true, false, 0);
  assert.equal(isRandomAccessAt(bytes, 0), false);
  writeTsHeader(bytes, 0, 256, true, true, 0);
  assert.equal(isRandomAccessAt(bytes, 0), true);
  bytes[4] = 0;
  assert.equal(isRandomAccessAt(bytes, 0), false);
});

test("readPesHeader reads what writePesHeader writes, with all 33 bits", () => {
  for (const pts of [0, 2 ** 30, 2 ** 30 - 1, 2 ** 32 + 12345, TICKS_MODULUS - 1]) {
    const bytes = new Uint8Array(32);
    assert.equal(writePesHeader(bytes, 0, 0xe0, 100, pts, pts), 14);
    assert.deepEqual(readPesHeader(bytes, 0), {
      streamId: 0xe0,
      packetBytes: 108,
      pts,
      dts: pts,
      payloadAt: 14,
    });
    assert.equal(writePesHeader(bytes, 0, 0xe0, 70_000, pts, (pts + 5) % TICKS_MODULUS), 19);
    const read = readPesHeader(bytes, 0);
    assert.deepEqual([read.packetBytes, read.pts, read.dts], [0, pts, (pts + 5) % TICKS_MODULUS]);
  }
});

test("readPesHeader rejects a truncated header and a wrong start code, and accepts streams without times", () => {
  const bytes = new Uint8Array(20);
  writePesHeader(bytes, 0, 0xc0, 1, 5, 5);
  assert.throws(() => readPesHeader(bytes, 0, 12), DecodeError);
  assert.throws(() => readPesHeader(bytes, 1), DecodeError);
  bytes[3] = 0xbe;
  assert.deepEqual(readPesHeader(bytes, 0).payloadAt, 6);
});

test("detectLayout detects packets of 188, 192 and 204 bytes from any offset", () => {
  for (const stride of [188, 192, 204]) {
    const bytes = new Uint8Array(stride * 12);
    for (let i = 0; i < 12; i++) bytes[i * stride + 30] = 0x47;
    assert.deepEqual(detectLayout(bytes), { stride, at: 30 });
  }
  assert.equal(detectLayout(new Uint8Array(5000)), undefined);
});

test("alignPackets skips garbage and returns the offsets of packets", () => {
  const bytes = new Uint8Array(188 * 8 + 50).fill(1);
  for (let i = 0; i < 4; i++) bytes[i * 188] = 0x47;
  for (let i = 0; i < 4; i++) bytes[4 * 188 + 50 + i * 188] = 0x47;
  const aligned = alignPackets(bytes, 188, true, true);
  assert.deepEqual([...aligned.starts], [0, 188, 376, 564, 802, 990, 1178, 1366]);
  assert.deepEqual([aligned.skipped, aligned.used, aligned.packets.length], [50, bytes.length, 8 * 188]);
});
