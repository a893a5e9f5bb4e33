import { concatBytes } from "../../../src/base/bytes.ts";
import { adtsPrefix, adtsProblem, parseAacConfig, readAdtsHeader } from "../../../src/media/aac.ts";
import { readAc3Header, readAc3Programme } from "../../../src/media/ac3.ts";
import { readMpegAudioHeader } from "../../../src/media/audio-headers.ts";
import { parseAvcConfig, parseH264Sps } from "../../../src/media/h264.ts";
import { parseHevcConfig, parseHevcSps } from "../../../src/media/hevc.ts";
import { annexBNals, unescapeNal, withStartCodes } from "../../../src/media/nal.ts";
import { AAC_CONFIG, AVCC, PPS, SPS } from "../../remux/synthetic-ts.ts";
import type { FuzzTarget } from "../contract.ts";

const HEVC_SPS = new Uint8Array([
  0x42, 1, 1, 1, 0x60, 0, 0, 3, 0, 0x90, 0, 0, 3, 0, 0, 3, 0, 0x3c, 0xa0, 0x0a, 8, 0x0f, 0x16, 0x59,
]);
const HVCC = concatBytes([
  new Uint8Array(22).fill(1),
  new Uint8Array([1, 0x21, 0, 1, 0, HEVC_SPS.length]),
  HEVC_SPS,
]);

export const targets: FuzzTarget[] = [
  { name: "h264-sps", corpus: () => [SPS], maxBytes: 2048, run: parseH264Sps },
  { name: "hevc-sps", corpus: () => [HEVC_SPS], maxBytes: 2048, run: parseHevcSps },
  { name: "avcc", corpus: () => [AVCC], maxBytes: 2048, run: parseAvcConfig },
  { name: "hvcc", corpus: () => [HVCC], maxBytes: 2048, run: parseHevcConfig },
  {
    name: "aac-config",
    corpus: () => [
      AAC_CONFIG,
      new Uint8Array([0x2b, 0x11, 0x88, 0]),
      new Uint8Array([0x11, 0x80, 4, 0xc8, 0x44, 0, 0x20, 0, 0xc4, 0x0c]),
    ],
    maxBytes: 256,
    run(bytes) {
      const config = parseAacConfig(bytes);
      return adtsProblem(config) ?? adtsPrefix(config);
    },
  },
  {
    name: "audio-headers",
    corpus: () => [
      new Uint8Array([0xff, 0xf1, 0x4c, 0x80, 0x15, 0x9f, 0xfc, 0]),
      new Uint8Array([0x0b, 0x77, 0, 0, 0x1c, 0x40, 0xe1, 0]),
    ],
    maxBytes: 64,
    run: (bytes) => [
      readAdtsHeader(bytes, 0),
      readAc3Header(bytes, 0),
      readAc3Programme(bytes, 0),
      readMpegAudioHeader(bytes, 0),
    ],
  },
  {
    name: "nal",
    corpus: () => [withStartCodes([SPS, PPS])],
    words: [new Uint8Array([0, 0, 1]), new Uint8Array([0, 0, 3])],
    run: (bytes) => annexBNals(bytes).map(({ start, end }) => unescapeNal(bytes.subarray(start, end)).length),
  },
];
