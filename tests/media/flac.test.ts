import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeFlacFrame, readFlacConfig } from "../../src/media/flac.ts";
import { type FlacMethod, flacFrame } from "./flac-frames.ts";

const DEFAULTS = { sampleRate: 0, bitsPerSample: 0 };
const tone = (frequency: number) =>
  Int32Array.from({ length: 192 }, (_, i) => Math.round(12_000 * Math.sin(i * frequency)));
const [left, right] = [tone(0.11), tone(0.07)];
const each = (map: (i: number) => number) => Int32Array.from(left, (_, i) => map(i));
const side = each((i) => left[i]! - right[i]!);
const middle = each((i) => (left[i]! + right[i]!) >> 1);
const STEREO: Record<string, readonly [code: number, channels: readonly Int32Array[]]> = {
  "two channels": [1, [left, right]],
  "left and side": [8, [left, side]],
  "side and right": [9, [side, right]],
  "middle and side": [10, [middle, side]],
};

for (const [name, [code, channels]] of Object.entries(STEREO)) {
  test(`decodeFlacFrame: ${name}, with each kind of subframe, gives the samples that were written`, () => {
    for (const method of ["verbatim", "fixed", "linear"] satisfies FlacMethod[]) {
      const samples = decodeFlacFrame(flacFrame(code, channels, method), DEFAULTS);
      assert.equal(samples?.sampleRate, 48000, method);
      const decoded = samples.channels.map((plane) => Int32Array.from(plane, (value) => value * 32768));
      assert.deepEqual(decoded, [left, right], method);
    }
  });
}

test("decodeFlacFrame: a frame with a wrong bit, or cut off, is damaged", () => {
  const frame = flacFrame(1, [left, right], "fixed");
  for (let at = 0; at < frame.length; at += 7) {
    const damaged = frame.slice();
    damaged[at]! ^= 1 << (at % 8);
    assert.equal(decodeFlacFrame(damaged, DEFAULTS), undefined, String(at));
    assert.equal(decodeFlacFrame(frame.subarray(0, at), DEFAULTS), undefined);
  }
});

test("readFlacConfig: the rate and the bits of STREAMINFO, with or without the mark of the stream", () => {
  const block = new Uint8Array(38);
  block.set([0, 0, 0, 34]);
  // 96000 Hz (20 bits), 2 channels (3 bits), 24 bits (5 bits).
  block.set([0x17, 0x70, 0x03, 0x70], 14);
  assert.deepEqual(readFlacConfig(block), { sampleRate: 96000, bitsPerSample: 24 });
  assert.deepEqual(
    readFlacConfig(new Uint8Array([...new TextEncoder().encode("fLaC"), ...block])),
    readFlacConfig(block),
  );
  assert.deepEqual(readFlacConfig(undefined), DEFAULTS);
});
