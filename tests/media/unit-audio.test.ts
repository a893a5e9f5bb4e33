import assert from "node:assert/strict";
import { test } from "node:test";
import { concatBytes } from "../../src/base/bytes.ts";
import { opusUnits, readBlurayPcm } from "../../src/media/unit-audio.ts";

test("opusUnits: splits a PES packet, with sizes above 255 bytes, trims and extensions", () => {
  const packet = (toc: number, size: number) => new Uint8Array(size).fill(1).fill(toc, 0, 1);
  const bytes = concatBytes([
    Uint8Array.of(0x7f, 0xe0, 255, 45),
    packet(0xf8, 300), // CELT, 20 ms.
    Uint8Array.of(0x7f, 0xfc, 10, 0, 5, 0, 6, 2, 9, 9), // Both trims, and two bytes of extension.
    packet(0x19, 10), // SILK, two frames of 60 ms.
  ]);
  assert.deepEqual(
    opusUnits(bytes).map(({ data, samples }) => [data.length, samples]),
    [
      [300, 960],
      [10, 5760],
    ],
  );
  assert.equal(opusUnits(bytes.subarray(0, bytes.length - 1)).length, 1);
  assert.deepEqual(opusUnits(Uint8Array.of(1, 2, 3, 4)), []);
});

test("readBlurayPcm: 5.1 in the order of WAV files; an odd number of channels is padded", () => {
  const sample = (value: number) => [value, 0, 0];
  const surround = Uint8Array.of(0, 18, 0x91, 0xc0, ...[1, 2, 3, 4, 5, 6].flatMap(sample));
  const pcm = readBlurayPcm(surround)!;
  assert.deepEqual([pcm.bits, pcm.sampleRate, pcm.channels, pcm.samples], [24, 48_000, 6, 1]);
  assert.deepEqual([...pcm.data], [1, 2, 3, 6, 4, 5].flatMap(sample));
  const mono = readBlurayPcm(Uint8Array.of(0, 8, 0x14, 0x40, 1, 2, 0, 0, 3, 4, 0, 0))!;
  assert.deepEqual([mono.bits, mono.sampleRate, mono.samples, [...mono.data]], [16, 96_000, 2, [1, 2, 3, 4]]);
  for (const wrong of [[], [0, 0, 0x91], [0, 0, 0x21, 0x40, 1, 2, 3, 4], [0, 0, 0x31, 0x40, 1, 2, 3]])
    assert.equal(readBlurayPcm(Uint8Array.from(wrong)), undefined);
});
