import { concatBytes } from "../../../src/base/bytes.ts";
import { encodeUtf8 } from "../../../src/base/utf8.ts";
import { parseBlockGroup, parseSimpleBlock } from "../../../src/media/matroska-blocks.ts";
import {
  parseMatroskaCues,
  parseMatroskaTracks,
  parseSeekHead,
  parseSegmentInfo,
} from "../../../src/media/matroska-head.ts";
import type { FuzzTarget } from "../contract.ts";

/** Encodes an element with a size field of one or four bytes. */
function element(id: number[], ...content: Uint8Array[]): Uint8Array {
  const data = concatBytes(content);
  const size =
    data.length < 127 ? [0x80 | data.length] : [0x10, data.length >> 16, data.length >> 8, data.length];
  return concatBytes([new Uint8Array([...id, ...size]), data]);
}

const bytes = (...values: number[]) => new Uint8Array(values);

const TRACK = element(
  [0xae],
  element([0xd7], bytes(1)),
  element([0x83], bytes(1)),
  element([0x86], encodeUtf8("V_MPEG4/ISO/AVC")),
  element([0x22, 0xb5, 0x9c], encodeUtf8("ger")),
  element([0x53, 0x6e], encodeUtf8("Titel")),
  element([0x23, 0xe3, 0x83], bytes(2, 0x62, 0x5a, 0)),
  element(
    [0x6d, 0x80],
    element(
      [0x62, 0x40],
      element([0x50, 0x34], element([0x42, 0x54], bytes(3)), element([0x42, 0x55], bytes(9))),
    ),
  ),
);
const CUE = element(
  [0xbb],
  element([0xb3], bytes(0x17, 0x70)),
  element([0xb7], element([0xf7], bytes(1)), element([0xf1], bytes(1, 2, 3))),
);
const INFO = concatBytes([
  element([0x2a, 0xd7, 0xb1], bytes(0x0f, 0x42, 0x40)),
  element([0x44, 0x89], bytes(0x46, 0, 0, 0)),
]);
const SEEK = element(
  [0x4d, 0xbb],
  element([0x53, 0xab], bytes(0x1c, 0x53, 0xbb, 0x6b)),
  element([0x53, 0xac], bytes(1, 0)),
);

const head: FuzzTarget = {
  name: "matroska-head",
  corpus: () => [concatBytes([TRACK, TRACK]), INFO, concatBytes([SEEK, SEEK])],
  extremes: () => [
    concatBytes(Array<Uint8Array>(700).fill(TRACK)),
    concatBytes(Array<Uint8Array>(3000).fill(SEEK)),
  ],
  run: (input) => [parseMatroskaTracks(input), parseSegmentInfo(input), parseSeekHead(input)],
};

const cues: FuzzTarget = {
  name: "matroska-cues",
  corpus: () => [concatBytes([CUE, CUE, CUE])],
  extremes: () => [concatBytes(Array<Uint8Array>(4000).fill(CUE))],
  run: parseMatroskaCues,
};

const block: FuzzTarget = {
  name: "matroska-block",
  corpus: () => [
    bytes(0x81, 0, 40, 0x80, 1, 2, 3, 4),
    bytes(0x81, 0, 40, 0x82, 2, 3, 2, 1, 2, 3, 4, 5, 6, 7, 8),
    bytes(0x81, 0, 40, 0x84, 1, 1, 2, 3, 4),
    bytes(0x81, 0, 40, 0x86, 2, 0x83, 0xbf, 1, 2, 3, 4, 5, 6, 7, 8),
    element([0xa1], bytes(0x81, 0xff, 0xf0, 0, 1, 2, 3)),
    concatBytes([
      element([0xa1], bytes(0x81, 0, 1, 0, 9)),
      element([0x9b], bytes(40)),
      element([0xfb], bytes(1)),
    ]),
  ],
  run: (input) =>
    input[0] === 0xa1 ? parseBlockGroup(input, 0, input.length) : parseSimpleBlock(input, 0, input.length),
};

export const targets: FuzzTarget[] = [head, cues, block];
