import assert from "node:assert/strict";
import { test } from "node:test";
import { readAc3Programme } from "../../../src/media/ac3.ts";
import { CodecModules } from "../../../src/remux/codecs/codec-module.ts";
import { isDecodable, openDecoder } from "../../../src/remux/codecs/decoders.ts";
import { readCodecProgram } from "../../../src/runtime/codec-scripts.ts";
import { seededRandom } from "../../seeded-random.ts";
import { ac3Tone } from "./encoded-sound.ts";

const modules = new CodecModules(readCodecProgram);

test("openDecoder ac3: the samples are those that were encoded, with the layout of the header", async () => {
  const [, , frame] = await ac3Tone(0.2, 6);
  const decoder = await openDecoder(modules, {
    codec: "ac3",
    config: undefined,
    sampleRate: 48000,
    channels: 6,
  });
  decoder!.decode(frame!.data);
  const samples = decoder!.decode(frame!.data)!;
  assert.deepEqual(samples.layout, ["L", "R", "C", "LFE", "SL", "SR"]);
  assert.equal(samples.channels[0]!.length, 1536);
  const loudest = samples.channels[0]!.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0);
  assert.ok(loudest > 0.3 && loudest < 0.5, String(loudest));
  decoder!.close();
});

test("readAc3Programme: channels and dialogue level; undefined without a header", async () => {
  const [frame] = await ac3Tone(0.1, 6);
  assert.deepEqual(readAc3Programme(frame!.data, 0), { mode: 7, hasLowFrequencies: true, dialogueLevel: 31 });
  const [stereo] = await ac3Tone(0.1, 2);
  assert.equal(readAc3Programme(stereo!.data, 0)?.mode, 2);
  assert.equal(readAc3Programme(new Uint8Array(20), 0), undefined);
});

test("openDecoder: no codec throws on random bytes", async () => {
  const random = seededRandom(7);
  for (const codec of ["ac3", "eac3", "dts", "mp2", "mp3", "opus", "flac", "pcm-s16"]) {
    assert.ok(isDecodable(codec));
    const decoder = await openDecoder(modules, { codec, config: undefined, sampleRate: 48000, channels: 2 });
    for (let i = 0; i < 30; i++) {
      const frame = new Uint8Array(4 + random() * 2000).map(() => random() * 256);
      if (i % 2 === 0) frame.set({ ac3: [0x0b, 0x77], dts: [0x7f, 0xfe, 0x80, 0x01] }[codec] ?? [0xff, 0xfd]);
      decoder!.decode(frame);
    }
    decoder!.close();
  }
  // A file names its codecs itself.
  for (const name of ["A_TRUEHD", "toString", "constructor", "__proto__"])
    assert.equal(isDecodable(name), false);
});
