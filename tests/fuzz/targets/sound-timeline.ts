import assert from "node:assert/strict";
import { BLOCK_SAMPLES } from "../../../src/remux/codecs/limiter.ts";
import { RateConverter } from "../../../src/remux/codecs/resampler.ts";
import { layoutOf, type Samples } from "../../../src/remux/codecs/samples.ts";
import { Timeline } from "../../../src/remux/codecs/timeline.ts";
import type { FuzzTarget } from "../contract.ts";

/** Bytes that describe a frame: rate, channels, samples in units of two, level, and two for the time since the frame before. */
const FRAME_BYTES = 6;
const RATES = [48000, 44100, 32000, 8000, 96000, 11025, 7, 192_000];
/** The most that gaps and frames can add: see `MAX_SILENCE_SECONDS` of the timeline. */
const SILENCE_BLOCKS = (60 * 48000) / BLOCK_SAMPLES;

/** Decoded frames with any rates, channels and times: what is encoded has whole blocks, finite samples and no clipping. */
export const target: FuzzTarget = {
  name: "sound-timeline",
  maxBytes: 12 * FRAME_BYTES,
  corpus: () => [
    Uint8Array.from({ length: 12 * FRAME_BYTES }, (_, i) => [0, 2, 96, 100, 0, 32][i % FRAME_BYTES]!),
    Uint8Array.from(
      { length: 12 * FRAME_BYTES },
      (_, i) => (i < 36 ? [0, 2, 96, 255, 0, 32] : [1, 6, 64, 255, 0, 23])[i % FRAME_BYTES]!,
    ),
    Uint8Array.from(
      { length: 12 * FRAME_BYTES },
      (_, i) => [i % 7, i % 9, i, 3 * i, i & 16 ? 0x80 : 0, 7 * i][i % FRAME_BYTES]!,
    ),
  ],
  run(bytes) {
    const channels = (bytes[0] ?? 0) & 0x80 ? 6 : 2;
    let blocks = 0;
    const timeline = new Timeline({ sampleRate: 48000, channels, anchor: 0 }, (block) => {
      assert.equal(block.length, channels * BLOCK_SAMPLES);
      // Several times as fast as `every`.
      for (let i = 0; i < block.length; i++)
        if (!(Math.abs(block[i]!) <= 1)) assert.fail(`a sample is ${block[i]}`);
      blocks++;
      timeline.recycle(block);
    });
    const rates = new RateConverter(48000);
    let [seconds, frames] = [0, 0];
    for (let at = 0; at + FRAME_BYTES <= bytes.length; at += FRAME_BYTES, frames++) {
      const [rate = 0, count = 0, length = 0, level = 0, high = 0, low = 0] = bytes.subarray(
        at,
        at + FRAME_BYTES,
      );
      // Some in tenths of a second, and back in time.
      const step = high === 0x80 ? (low - 64) / 10 : low / 1000;
      seconds += step;
      const layout = layoutOf(count % 10);
      const samples: Samples | undefined = layout && {
        sampleRate: RATES[rate & 7]!,
        channels: layout.map((_, channel) =>
          new Float32Array(2 * length).fill(((level - 128) / 64) * (channel & 1 ? -1 : 1)),
        ),
        layout,
      };
      timeline.add(
        { ptsSeconds: seconds, durationSeconds: length / 1000 },
        rates.convert(samples),
        1,
        (rate & 7) === 0,
      );
    }
    timeline.finish(3);
    // A sample of 8,000 Hz is six samples of the output.
    const most = SILENCE_BLOCKS + 8 + (frames * 2 * 255 * 6) / BLOCK_SAMPLES + frames * 48;
    assert.ok(blocks <= most, `${blocks} blocks`);
    return blocks;
  },
};
