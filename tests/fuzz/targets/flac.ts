import { assert } from "../../../src/base/assert.ts";
import { decodeFlacFrame, readFlacConfig } from "../../../src/media/flac.ts";
import { flacFrame, withFlacChecksum } from "../../media/flac-frames.ts";
import type { FuzzTarget } from "../contract.ts";

const tone = Int32Array.from({ length: 192 }, (_, i) => Math.round(9000 * Math.sin(i / 9)));

export const target: FuzzTarget = {
  name: "flac",
  corpus: () => [
    flacFrame(0, [tone], "verbatim"),
    flacFrame(10, [tone, tone], "fixed"),
    flacFrame(1, [tone, tone], "linear"),
  ],
  maxBytes: 8192,
  run(bytes) {
    // The checksum would refuse nearly all inputs.
    const frame = withFlacChecksum(Uint8Array.from(bytes));
    const samples = decodeFlacFrame(frame, readFlacConfig(bytes));
    for (const plane of samples?.channels ?? []) {
      assert(plane.length <= 65_536, "no more samples than a frame has");
      assert(plane.every(Number.isFinite), "finite samples");
    }
    return samples?.channels.length ?? 0;
  },
};
