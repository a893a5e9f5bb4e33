import assert from "node:assert/strict";
import { test } from "node:test";
import { concatBytes } from "../../src/base/bytes.ts";
import { readRtpTs } from "../../src/media/rtp.ts";
import { seededRandom } from "../seeded-random.ts";

const packet = new Uint8Array(188).fill(7);
packet[0] = 0x47;
const two = concatBytes([packet, packet]);

function rtp(first: number, ...parts: readonly Uint8Array[]): Uint8Array {
  const head = new Uint8Array(12);
  head.set([first, 33, 0x12, 0x34]);
  return concatBytes([head, ...parts]);
}

test("readRtpTs: reads packets after any form of header", () => {
  const wanted = { packets: two, sequence: 0x1234 };
  assert.deepEqual(readRtpTs(rtp(0x80, two)), wanted);
  assert.deepEqual(readRtpTs(rtp(0x82, new Uint8Array(8), two)), wanted, "two contributing sources");
  assert.deepEqual(
    readRtpTs(rtp(0x90, new Uint8Array([1, 2, 0, 1, 0, 0, 0, 0]), two)),
    wanted,
    "an extension",
  );
  assert.deepEqual(readRtpTs(rtp(0xa0, two, new Uint8Array([0, 0, 0, 4]))), wanted, "padding");
});

test("readRtpTs: returns undefined for other datagrams", () => {
  assert.equal(readRtpTs(two), undefined);
  assert.equal(readRtpTs(rtp(0x80, two.subarray(1))), undefined);
  assert.equal(readRtpTs(rtp(0x40, two)), undefined);
  assert.equal(readRtpTs(rtp(0x80, packet, new Uint8Array(188))), undefined);
  assert.equal(readRtpTs(rtp(0x90, two)), undefined);
  assert.equal(readRtpTs(new Uint8Array(0)), undefined);
  const random = seededRandom(2);
  for (let i = 0; i < 5000; i++) {
    const bytes = rtp(0x80, two).slice(0, Math.floor(random() * 400));
    for (let j = 0; j < 6; j++) bytes[Math.floor(random() * bytes.length)] = random() * 256;
    const found = readRtpTs(bytes);
    assert.ok(found === undefined || found.packets.length % 188 === 0);
  }
});
