import { assert } from "../../../src/base/assert.ts";
import { captionData } from "../../../src/media/subtitles/caption-data.ts";
import { Cea708Decoder } from "../../../src/media/subtitles/cea708.ts";
import { captionUnit, characters, defineWindow, dtvccPacket } from "../../media/encode-cea708.ts";
import type { FuzzTarget } from "../contract.ts";

const SHOWN = dtvccPacket(1, [...defineWindow(0), ...characters("A caption"), 0x0d, 0x10, 0x32]);
const HIDDEN = dtvccPacket(1, [0x92, 1, 2, 0x8b, 3, 0x8c, 0xff, 0x8f]);

/** CEA-708 captions, as caption data and in frames. */
export const target: FuzzTarget = {
  name: "cea708",
  corpus: () => [SHOWN, HIDDEN, captionUnit(SHOWN), captionUnit(HIDDEN)],
  words: [
    Uint8Array.of(3, 0xc8),
    ...[0x88, 0x89, 0x8c, 0x8f, 0x98, 0x10, 0x18, 0x0d].map((code) => Uint8Array.of(2, code, 0x98)),
    Uint8Array.of(6, 4, 20, 0xb5, 0, 0x31),
  ],
  run(bytes) {
    const decoder = new Cea708Decoder();
    decoder.push(bytes, 0);
    for (const codec of ["h264", "hevc", "mpeg2video"]) {
      const data = captionData(codec, bytes);
      assert(data.length % 3 === 0 && data.length <= 3 * bytes.length, "entries of three bytes");
      decoder.push(data, 1);
    }
    for (const { text } of decoder.states) assert(text.length <= 8 * 15 * 65 * 4, "at most eight windows");
    return decoder.states;
  },
};
