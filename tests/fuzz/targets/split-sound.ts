import { assert } from "../../../src/base/assert.ts";
import { concatBytes } from "../../../src/base/bytes.ts";
import { adtsPrefix, parseAacConfig, setAdtsLength } from "../../../src/media/aac.ts";
import { readId3 } from "../../../src/media/id3.ts";
import { packedAudioToTs } from "../../../src/remux/packed-audio.ts";
import { interleaveTs } from "../../../src/remux/ts-interleave.ts";
import { id3Tag, timeFrame } from "../../media/id3-tags.ts";
import { AAC_CONFIG, syntheticTs } from "../../remux/synthetic-ts.ts";
import type { FuzzTarget } from "../contract.ts";

const frame = concatBytes([adtsPrefix(parseAacConfig(AAC_CONFIG)), new Uint8Array(40)]);
setAdtsLength(frame, 0, frame.length);
const PACKED = concatBytes([id3Tag(4, timeFrame(900_000n)), ...Array.from({ length: 30 }, () => frame)]);
const STREAM = syntheticTs(0.2);

const packed: FuzzTarget = {
  name: "packed-audio",
  corpus: () => [PACKED],
  words: [new Uint8Array([0x49, 0x44, 0x33, 4]), new Uint8Array([0xff, 0xf1])],
  run(bytes) {
    assert(readId3(bytes).length <= bytes.length, "tags end inside");
    return packedAudioToTs(bytes, 0, "und")?.length ?? 0;
  },
};

const interleaved: FuzzTarget = {
  name: "ts-interleave",
  corpus: () => [STREAM, STREAM.slice(0, 188 * 60)],
  words: [new Uint8Array([0x47, 0x40, 0, 0x10, 0])],
  run(bytes) {
    const half = 188 * ((bytes.length >> 1) >> 8);
    const ts = interleaveTs(bytes, [bytes.subarray(half)], "eng");
    assert(ts.length % 188 === 0, "whole packets");
    assert(ts.length < 3 * bytes.length + 188 * 200, "no more than came, and tables");
    return ts.length;
  },
};

export const targets: FuzzTarget[] = [packed, interleaved];
