import { concatBytes, latin1Bytes, writeU32 } from "../../../src/base/bytes.ts";
import { parseFragmentAccess, parseSegmentIndex } from "../../../src/media/mp4-index.ts";
import { parseMp4Samples } from "../../../src/media/mp4-samples.ts";
import type { FuzzTarget } from "../contract.ts";

function words(...values: number[]): Uint8Array {
  const bytes = new Uint8Array(values.length * 4);
  for (const [i, value] of values.entries()) writeU32(bytes, i * 4, value);
  return bytes;
}

function box(type: string, ...content: Uint8Array[]): Uint8Array {
  const data = concatBytes(content);
  return concatBytes([words(data.length + 8), latin1Bytes(type), data]);
}

const STBL = box(
  "stbl",
  box("stsd", words(0, 1, 16), latin1Bytes("avc1"), words(0, 0)),
  box("stts", words(0, 1, 6, 512)),
  box("ctts", words(0, 2, 2, 1024, 4, 0)),
  box("stsc", words(0, 1, 1, 3, 1)),
  box("stsz", words(0, 0, 6, 10, 20, 30, 40, 50, 60)),
  box("stco", words(0, 2, 48, 108)),
  box("stss", words(0, 2, 1, 4)),
);
const TRAK = box(
  "trak",
  box("tkhd", words(0, 0, 0, 1, 0)),
  box("edts", box("elst", words(0, 1, 1000, 1024, 0x10000))),
  box(
    "mdia",
    box("mdhd", words(0, 0, 0, 12800, 3072, 0x55c40000)),
    box("hdlr", words(0, 0), latin1Bytes("vide"), words(0, 0, 0)),
    box("minf", STBL),
  ),
);
const MOOV = concatBytes([box("mvhd", words(0, 0, 0, 1000, 240, 0, 0, 0)), TRAK]);
const SIDX = words(0, 1, 12800, 0, 0, 3, 1000, 512, 0x90000000, 2000, 512, 0x90000000, 3000, 512, 0x90000000);
const MFRA = box("tfra", words(0x01000000, 1, 0x3f, 1, 0, 512, 0, 1000, 1, 1, 1));

const samples: FuzzTarget = {
  name: "mp4-samples",
  corpus: () => [MOOV, concatBytes([MOOV, TRAK])],
  extremes: () => [concatBytes(Array<Uint8Array>(150).fill(TRAK))],
  words: [words(0xffffffff), words(0x7fffffff), words(0)],
  // A file of half the length of its index: samples of constant size must fit into it.
  run: (input) => parseMp4Samples(input, input.length / 2),
};

const index: FuzzTarget = {
  name: "mp4-index",
  corpus: () => [SIDX, MFRA],
  words: [words(0xffffffff)],
  run: (input) =>
    input[0] === 0 && input[5] === 0 ? parseSegmentIndex(input, 100) : parseFragmentAccess(input),
};

export const targets: FuzzTarget[] = [samples, index];
