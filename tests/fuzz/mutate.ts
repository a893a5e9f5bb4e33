import { concatBytes, latin1Bytes } from "../../src/base/bytes.ts";
import { type Random, randomBelow } from "../../src/base/random.ts";

/** Boundary values of decoders. */
const EDGE_BYTES = [0x00, 0x01, 0x7f, 0x80, 0xff, 0x2d, 0x2f, 0x30, 0x39, 0x3a, 0x47, 0x64, 0x65, 0x69, 0x6c];
const EDGE_NUMBERS = [
  "0",
  "-1",
  "-0",
  "00",
  "1",
  "127",
  "255",
  "256",
  "65535",
  "65536",
  "16384",
  "2147483647",
  "2147483648",
  "4294967295",
  "4294967296",
  "9007199254740991",
  "9007199254740992",
  "18446744073709551615",
  "99999999999999999999",
].map(latin1Bytes);
const EDGE_WORDS = [0, 1, 0x7f, 0x80, 0xff, 0x7fffffff, 0x80000000, 0xffffffff, 0x00010000, 0x00004000];

/** Data that a mutation may insert. */
export interface MutationSources {
  readonly corpus: readonly Uint8Array[];
  readonly words: readonly Uint8Array[];
  readonly maxBytes: number;
}

/** Returns a copy of `seed` with one to eight random changes. */
export function mutateBytes(random: Random, seed: Uint8Array, sources: MutationSources): Uint8Array {
  let bytes: Uint8Array = seed.slice();
  let rounds = 1;
  while (rounds < 8 && random() < 0.5) rounds++;
  for (let i = 0; i < rounds; i++) bytes = change(random, bytes, sources);
  return bytes.length > sources.maxBytes ? bytes.slice(0, sources.maxBytes) : bytes;
}

function change(random: Random, bytes: Uint8Array, sources: MutationSources): Uint8Array {
  const at = randomBelow(random, bytes.length + 1);
  const length = Math.min(randomLength(random), bytes.length - at);
  switch (randomBelow(random, 11)) {
    case 0:
      if (at < bytes.length) bytes[at]! ^= 1 << randomBelow(random, 8);
      return bytes;
    case 1:
      if (at < bytes.length) bytes[at] = EDGE_BYTES[randomBelow(random, EDGE_BYTES.length)]!;
      return bytes;
    case 2:
      if (at < bytes.length) bytes[at] = randomBelow(random, 256);
      return bytes;
    case 3:
      return replaced(bytes, at, length, new Uint8Array(0));
    case 4:
      return replaced(bytes, at, 0, bytes.slice(at, at + length));
    case 5:
      return replaced(bytes, at, 0, noise(random));
    case 6:
      return bytes.slice(0, at);
    case 7:
      return withNumber(random, bytes, at);
    case 8:
      return withWord32(random, bytes, at);
    case 9:
      return sources.words.length === 0 ? bytes : replaced(bytes, at, 0, pick(random, sources.words));
    default:
      return spliced(random, bytes, at, pick(random, sources.corpus));
  }
}

function randomLength(random: Random): number {
  return 1 + Math.floor(2 ** (random() * 8));
}

function noise(random: Random): Uint8Array {
  return Uint8Array.from({ length: randomLength(random) }, () => randomBelow(random, 256));
}

/** Replaces the digits at or after `at` with a boundary number. */
function withNumber(random: Random, bytes: Uint8Array, at: number): Uint8Array {
  const isDigit = (index: number) => bytes[index]! >= 0x30 && bytes[index]! <= 0x39;
  let start = at;
  while (start < bytes.length && !isDigit(start)) start++;
  let end = start;
  while (end < bytes.length && isDigit(end)) end++;
  return replaced(bytes, start, end - start, pick(random, EDGE_NUMBERS));
}

function withWord32(random: Random, bytes: Uint8Array, at: number): Uint8Array {
  if (at + 4 > bytes.length) return bytes;
  new DataView(bytes.buffer, bytes.byteOffset).setUint32(
    at,
    EDGE_WORDS[randomBelow(random, EDGE_WORDS.length)]!,
  );
  return bytes;
}

function spliced(random: Random, bytes: Uint8Array, at: number, other: Uint8Array): Uint8Array {
  return concatBytes([bytes.subarray(0, at), other.subarray(randomBelow(random, other.length + 1))]);
}

function replaced(bytes: Uint8Array, at: number, length: number, by: Uint8Array): Uint8Array {
  return concatBytes([bytes.subarray(0, at), by, bytes.subarray(at + length)]);
}

/** Returns a random item. */
export function pick<T>(random: Random, items: readonly T[]): T {
  return items[randomBelow(random, items.length)]!;
}
