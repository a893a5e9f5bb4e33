import { assert } from "../../../src/base/assert.ts";
import { TeletextDecoder } from "../../../src/media/teletext.ts";
import { boxed, teletextLines } from "../../media/encode-teletext.ts";
import type { FuzzTarget } from "../contract.ts";

function data(...pages: Parameters<typeof teletextLines>[0][]): Uint8Array {
  const lines = pages.flatMap(teletextLines);
  return Uint8Array.of(0x10, ...lines.flatMap((line) => [0x03, 44, 0xe7, 0xe4, ...line]));
}

/** Teletext comes from files and streams of others: any bytes give lines of text without control characters. */
export const target: FuzzTarget = {
  name: "teletext",
  corpus: () => [
    data({ page: 0x88, rows: { 20: boxed("Hello"), 22: boxed("\u0003there") } }, { page: 0x88 }),
    data({
      page: 0x88,
      sets: [36, 55],
      option: 4,
      rows: { 24: "a\u001bb" },
      triplets: [
        [64, 4, 0],
        [0, 18, 101],
      ],
    }),
  ],
  extremes: () => [
    data(
      ...Array(350).fill({
        page: 0x88,
        rows: { 20: "x" },
        triplets: [
          [60, 4, 0],
          [1, 15, 99],
        ],
      }),
    ),
  ],
  run(bytes) {
    const decoder = new TeletextDecoder({ magazine: 8, page: 0x88, language: "rus" });
    for (let at = 0, seconds = 0; at < bytes.length; at += 4096)
      decoder.push(bytes.subarray(at, at + 4096), seconds++);
    decoder.flush();
    for (const { text } of decoder.states) {
      const lines = text.split("\n");
      assert(lines.length <= 24 && lines.every((line) => line.length <= 200), "a page has 24 rows");
      // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern matches control characters
      assert(!/[\u0000-\u0009\u000b-\u001f]/.test(text), "no control characters");
    }
    return decoder.states;
  },
};
