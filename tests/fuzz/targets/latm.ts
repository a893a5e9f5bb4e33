import { assert } from "../../../src/base/assert.ts";
import { concatBytes } from "../../../src/base/bytes.ts";
import { LatmReader } from "../../../src/media/latm.ts";
import { latmFrames } from "../../../src/remux/audio/latm-frames.ts";
import { type LatmFields, loasFrame } from "../../media/encode-latm.ts";
import type { FuzzTarget } from "../contract.ts";

const AUDIO = new Uint8Array(300).fill(0x5a);
const FORMS: readonly LatmFields[] = [
  {},
  { hasConfig: false },
  { otherBits: 13 },
  { version: 1, fillBits: 5 },
  { objectType: 5 },
];
const FRAMES = FORMS.map((fields) => loasFrame(AUDIO, fields));

export const targets: FuzzTarget[] = [
  {
    name: "latm",
    corpus: () => FRAMES,
    run(bytes) {
      const { data, config } = new LatmReader().read(bytes);
      assert(data.length > 0 && data.length <= bytes.length, "no more audio than there is");
      assert(config.length === 2, "a configuration");
      return data;
    },
  },
  {
    name: "latm-units",
    corpus: () => [concatBytes(FRAMES)],
    words: [Uint8Array.of(0x56, 0xe1)],
    run(bytes) {
      const half = bytes.length >> 1;
      const unit = { at: 0, pts: 900_000 };
      const own = { ...unit, pts: undefined, bytes: bytes.subarray(half) };
      const made = latmFrames([{ ...unit, bytes: bytes.subarray(0, half) }], [own]);
      const size = made?.frames.reduce((sum, { data }) => sum + data.length, 0) ?? 0;
      assert(size <= bytes.length, "no more audio than there is");
      return made;
    },
  },
];
