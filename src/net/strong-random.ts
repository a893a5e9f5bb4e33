import { readU32 } from "../base/bytes.ts";
import type { Random } from "../base/random.ts";

/** Bytes fetched at once: a system call for each number would be slow. */
const BATCH_BYTES = 4096;

/** Returns a cryptographically secure random source of numbers in [0, 1). */
export function strongRandom(randomBytes: (length: number) => Uint8Array): Random {
  let bytes = new Uint8Array(0);
  let offset = 0;
  return () => {
    if (offset + 4 > bytes.length) {
      bytes = Uint8Array.from(randomBytes(BATCH_BYTES));
      offset = 0;
    }
    const value = readU32(bytes, offset) / 2 ** 32;
    offset += 4;
    return value;
  };
}
