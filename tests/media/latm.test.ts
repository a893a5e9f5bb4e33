import assert from "node:assert/strict";
import { test } from "node:test";
import { DecodeError } from "../../src/base/errors.ts";
import { LatmReader, loasFrameBytes } from "../../src/media/latm.ts";
import { type LatmFields, loasFrame } from "./encode-latm.ts";

const audio = Uint8Array.from({ length: 600 }, (_, i) => (i * 37) & 255);

test("LatmReader: returns the raw AAC, at any bit position, in both versions", () => {
  const forms: LatmFields[] = [
    {},
    { otherBits: 13 },
    { version: 1 },
    { version: 1, fillBits: 3, otherBits: 300 },
    { version: 1, fillBits: 16 },
  ];
  for (const fields of forms) {
    for (const length of [1, 254, 255, 510, 600]) {
      const data = audio.subarray(0, length);
      const frame = loasFrame(data, fields);
      assert.equal(loasFrameBytes(frame, 0), frame.length);
      const read = new LatmReader().read(frame);
      assert.deepEqual(read, { config: Uint8Array.of(0x11, 0x90), sampleRate: 48_000, data: data.slice() });
    }
  }
});

test("LatmReader: a frame refers to the configuration before it, until one is not supported", () => {
  const reader = new LatmReader();
  const plain = loasFrame(audio, { hasConfig: false });
  assert.throws(() => reader.read(plain), /no configuration/);
  reader.read(loasFrame(audio, { rateIndex: 4, channels: 6 }));
  assert.deepEqual(reader.read(plain).config, Uint8Array.of(0x12, 0x30));
  assert.equal(reader.audio?.sampleRate, 44_100);
  assert.throws(() => reader.read(loasFrame(audio, { subframes: 1 })), /several subframes/);
  assert.equal(reader.audio, undefined);
  assert.throws(() => reader.read(plain), /no configuration/);
});

test("LatmReader: HE-AAC with explicit SBR is AAC-LC with the rate of the core", () => {
  const { config, sampleRate } = new LatmReader().read(loasFrame(audio, { objectType: 5, rateIndex: 6 }));
  assert.deepEqual([sampleRate, config], [24_000, Uint8Array.of(0x13, 0x10)]);
});

test("LatmReader: rejects what ADTS cannot carry, with the reason", () => {
  const cases: [LatmFields, RegExp][] = [
    [{ version: 1, versionA: 1 }, /audioMuxVersionA 1/],
    [{ programs: 1 }, /several programs/],
    [{ layers: 1 }, /several layers/],
    [{ objectType: 4 }, /audio object type 4/],
    [{ hasShortFrames: true }, /960 samples/],
    [{ rateIndex: 15 }, /48001 Hz/],
    [{ channels: 0 }, /channel configuration 0/],
    [{ channels: 8 }, /channel configuration 8/],
    [{ frameLengthType: 1 }, /frame length type 1/],
  ];
  for (const [fields, reason] of cases)
    assert.throws(() => new LatmReader().read(loasFrame(audio, fields)), reason);
});

test("LatmReader: a truncated or empty frame is a DecodeError", () => {
  const frame = loasFrame(audio, { otherBits: 40 });
  for (let length = 3; length < frame.length; length++)
    assert.throws(() => new LatmReader().read(frame.subarray(0, length)), DecodeError);
  assert.throws(() => new LatmReader().read(loasFrame(new Uint8Array(0))), /empty frame/);
  assert.equal(loasFrameBytes(Uint8Array.of(0x56, 0xe0), 0), undefined);
  assert.equal(loasFrameBytes(Uint8Array.of(0x56, 0xc0, 1, 0), 0), undefined);
});
