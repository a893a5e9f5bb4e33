import { assert } from "../../../src/base/assert.ts";
import { equalBytes, latin1Bytes } from "../../../src/base/bytes.ts";
import { type BencodeValue, decodeBencode, decodeBencodePrefix } from "../../../src/wire/bencode.ts";
import { type BencodeInput, encodeBencode } from "../../../src/wire/bencode-encode.ts";
import { viewBencode } from "../../../src/wire/bencode-view.ts";
import type { FuzzTarget } from "../contract.ts";
import { densest } from "../extremes.ts";
import { mutateBencode } from "../mutate-bencode.ts";

const CORPUS = [
  "i0e",
  "i-42e",
  "0:",
  "4:spam",
  "le",
  "de",
  "l4:spam4:eggse",
  "d3:cow3:moo4:spam4:eggse",
  "d4:spaml1:a1:bee",
  "lllleeee",
  "d1:ad1:bd1:cleeee",
  "i9007199254740991e",
  "l-3:",
  "d-3:e",
  "i007e",
  "i-0e",
  "d1:b0:1:a0:e",
  `${"l".repeat(120)}${"e".repeat(120)}`,
  `${"d0:".repeat(90)}de${"e".repeat(90)}`,
].map(latin1Bytes);
const WORDS = ["i0e", "l", "d", "e", "0:", "1:a", "i-1e", "d0:", "10000:", "de", "le"].map(latin1Bytes);

/** Units that need far more memory than their bytes, with their number of values. */
const DENSE = [
  ["de", 1],
  ["le", 1],
  ["0:", 1],
  ["1:a", 1],
  ["i0e", 1],
  ["d0:0:e", 3],
  ["d1:a1:be", 3],
  ["d0:dee", 3],
] as const;

const strict: FuzzTarget = {
  name: "bencode",
  corpus: () => CORPUS,
  extremes: () => DENSE.map(([unit, values]) => densest(unit, values, 16, 3000)),
  words: WORDS,
  mutate: mutateBencode,
  run(bytes) {
    const value = decodeBencode(bytes);
    assert(equalBytes(encodeBencode(value as BencodeInput), bytes), "a strict value has one form only");
    return value;
  },
};

const lenient: FuzzTarget = {
  name: "bencode-lenient",
  corpus: () => CORPUS,
  words: WORDS,
  mutate: mutateBencode,
  run(bytes) {
    const { value, end } = decodeBencodePrefix(bytes, { lenientKeyOrder: true });
    assert(end > 0 && end <= bytes.length, "the end lies within the input");
    decodeBencode(encodeBencode(value as BencodeInput));
    return value;
  },
};

const view: FuzzTarget = {
  name: "bencode-view",
  corpus: () => CORPUS,
  extremes: () => DENSE.map(([unit, values]) => densest(unit, values, 4, 4096)),
  words: WORDS,
  mutate: mutateBencode,
  run(bytes) {
    const whole = viewBencode(bytes);
    assert(whole.range.start === 0 && whole.range.end === bytes.length, "a view covers the whole input");
    if (!whole.isDict) return whole;
    const value = decodeBencode(bytes, { maxTokens: bytes.length + 1 });
    for (const [key, member] of whole.entries()) {
      const { start, end } = member.range;
      const written = encodeBencode((value as ReadonlyMap<string, BencodeValue>).get(key) as BencodeInput);
      assert(equalBytes(written, bytes.subarray(start, end)), "a range holds exactly its value");
      assert(whole.get(key)?.range.start === start, "a key leads to its value");
    }
    return whole;
  },
};

export const targets = [strict, lenient, view];
