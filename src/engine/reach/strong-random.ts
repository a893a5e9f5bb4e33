import { readU32 } from "../../base/bytes.ts";
import type { Random } from "../../base/random.ts";

/** Bytes that are fetched at a time: asking the system for each number would cost more than all the rest. */
const BATCH_BYTES = 4096;

/** A source of numbers in [0, 1) that nobody can foresee. */
export function strongRandom(randomBytes: (length: number) => Uint8Array): Random {
  let bytes = new Uint8Array(0);
  let at = 0;
  return () => {
    if (at + 4 > bytes.length) {
      bytes = Uint8Array.from(randomBytes(BATCH_BYTES));
      at = 0;
    }
    const value = readU32(bytes, at) / 2 ** 32;
    at += 4;
    return value;
  };
}
