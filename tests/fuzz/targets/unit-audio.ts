import { assert } from "../../../src/base/assert.ts";
import { hasUnitFrames, unitFrames } from "../../../src/remux/audio/unit-frames.ts";
import type { FuzzTarget } from "../contract.ts";

const OPUS = Uint8Array.of(0x7f, 0xfc, 4, 0, 5, 0, 6, 1, 9, 0xf8, 1, 2, 3, 0x7f, 0xe0, 2, 0x19, 1);
const PCM = Uint8Array.of(0, 18, 0x91, 0xc0, ...new Uint8Array(36).fill(7));

function targetOf(codec: string, corpus: readonly Uint8Array[]): FuzzTarget {
  assert(hasUnitFrames(codec), "a codec with whole frames in its packets");
  return {
    name: `unit-audio-${codec}`,
    corpus: () => [...corpus],
    run(bytes) {
      const unit = { at: 0, pts: 900_000, bytes };
      const { own } = unitFrames(codec, [], [unit, { ...unit, pts: undefined }]);
      const made = own.reduce((sum, { data }) => sum + data.length, 0);
      assert(made <= 2 * bytes.length, "no more audio than there is");
      for (const { durationSeconds } of own) assert(durationSeconds > 0, "a frame takes time");
      return own;
    },
  };
}

/** Audio of transport streams whose packets contain whole frames. */
export const targets: FuzzTarget[] = [targetOf("opus", [OPUS]), targetOf("pcm_bluray", [PCM])];
