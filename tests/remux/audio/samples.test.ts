import assert from "node:assert/strict";
import { test } from "node:test";
import { BLOCK_SAMPLES, Limiter } from "../../../src/remux/codecs/limiter.ts";
import { openPcm } from "../../../src/remux/codecs/pcm.ts";
import { layoutOf, mixInto } from "../../../src/remux/codecs/samples.ts";

function mixed(count: number, outChannels: 2 | 6): number[] {
  const layout = layoutOf(count)!;
  // Channel n has the level n + 1.
  const channels = layout.map((_, index) => new Float32Array([index + 1]));
  const out = new Float32Array(outChannels);
  mixInto({ sampleRate: 48000, channels, layout }, [0, 1], outChannels, 1, out, 0);
  return [...out].map((value) => Math.round(value * 1000) / 1000);
}

test("mixInto: stereo from 5.1 as ITU-R BS.775, one channel to both sides, stereo unchanged", () => {
  assert.deepEqual(mixed(6, 2), [
    Math.round((1 + Math.SQRT1_2 * (3 + 5)) * 1000) / 1000,
    Math.round((2 + Math.SQRT1_2 * (3 + 6)) * 1000) / 1000,
  ]);
  assert.deepEqual(mixed(1, 2), [1, 1]);
  assert.deepEqual(mixed(2, 2), [1, 2]);
});

test("mixInto: 5.1 keeps its channels; 7.1 adds the back to the sides", () => {
  assert.deepEqual(mixed(6, 6), [1, 2, 3, 4, 5, 6]);
  assert.deepEqual(mixed(8, 6).slice(0, 4), [1, 2, 3, 4]);
  assert.equal(mixed(8, 6)[4], Math.round((7 + 5 * Math.SQRT1_2) * 1000) / 1000);
});

/** Blocks of a loud passage between quiet ones. */
function loudBlocks(): Float32Array[] {
  return Array.from({ length: 40 }, (_, index) =>
    new Float32Array(2 * BLOCK_SAMPLES).map(
      (_, i) => (index > 9 && index < 13 ? 2.3 : 0.5) * Math.sin(i * 0.05),
    ),
  );
}

function limited(blocks: readonly Float32Array[]): Float32Array[] {
  const limiter = new Limiter(2);
  return blocks.flatMap((block) => limiter.push(block.slice()) ?? []);
}

test("Limiter: nothing exceeds full scale, and quiet passages are unchanged", () => {
  const blocks = loudBlocks();
  const out = limited(blocks);
  assert.ok(out.every((block) => block.every((sample) => Math.abs(sample) < 0.951)));
  assert.deepEqual(out[3], blocks[3]);
  assert.deepEqual(out[30], blocks[30]);
});

test("Limiter: agrees with one that began elsewhere after eight blocks", () => {
  const blocks = loudBlocks();
  const later = limited(blocks.slice(12));
  assert.deepEqual(later.slice(9), limited(blocks).slice(21));
});

test("openPcm: reads each format at full scale", () => {
  const format = { sampleRate: 48000, channels: 1 };
  const bytes: Record<string, number[]> = {
    "pcm-u8": [0],
    "pcm-s16": [0, 0x80],
    "pcm-s16be": [0x80, 0],
    "pcm-s24": [0, 0, 0x80],
    "pcm-s24be": [0x80, 0, 0],
    "pcm-s32": [0, 0, 0, 0x80],
    "pcm-f32be": [0xbf, 0x80, 0, 0],
  };
  for (const [codec, frame] of Object.entries(bytes))
    assert.deepEqual(
      [...openPcm({ codec, config: undefined, ...format })!.decode(new Uint8Array(frame))!.channels[0]!],
      [-1],
      codec,
    );
  assert.equal(openPcm({ codec: "pcm-s16", config: undefined, sampleRate: 48000, channels: 99 }), undefined);
});
