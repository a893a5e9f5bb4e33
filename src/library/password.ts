import * as v from "valibot";
import { fromHex, toHex } from "../base/bytes.ts";
import type { ScryptCost } from "../runtime/contract.ts";
import { sameBytes } from "./same-secret.ts";

/** What is kept of a password: how it was made into a key, and the key. */
export const passwordRecord = v.object({
  N: v.pipe(v.number(), v.integer(), v.minValue(2), v.maxValue(2 ** 20)),
  r: v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(32)),
  p: v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(16)),
  salt: v.pipe(v.string(), v.regex(/^[0-9a-f]{32}$/)),
  key: v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/)),
});
export type PasswordRecord = v.InferOutput<typeof passwordRecord>;

/** OWASP asks for N = 2^17 with p = 1, or p = 3 at this N: as slow to guess, in a quarter of the memory (32 MiB). */
const COST = { N: 2 ** 15, r: 8, p: 3 };
const KEY_BYTES = 32;
const SALT_BYTES = 16;

/** What hashing needs. */
export interface PasswordParts {
  readonly scrypt: (password: string, salt: Uint8Array, cost: ScryptCost) => Promise<Uint8Array>;
  readonly randomBytes: (length: number) => Uint8Array;
}

/** What is kept of a new password. */
export async function hashPassword(password: string, parts: PasswordParts): Promise<PasswordRecord> {
  const salt = parts.randomBytes(SALT_BYTES);
  const key = await parts.scrypt(normalised(password), salt, { ...COST, keyBytes: KEY_BYTES });
  return { ...COST, salt: toHex(salt), key: toHex(key) };
}

/** Whether this is the password. Where there is none to compare with it takes as long, and says no. */
export async function isPassword(
  password: string,
  kept: PasswordRecord | undefined,
  parts: PasswordParts,
): Promise<boolean> {
  const { N, r, p } = kept ?? COST;
  const salt = fromHex(kept?.salt ?? "")!;
  const key = await parts.scrypt(normalised(password), salt, { N, r, p, keyBytes: KEY_BYTES });
  return sameBytes(key, fromHex(kept?.key ?? "")!);
}

/** Keyboards write one letter in several ways (RFC 8265 4.2.2). */
function normalised(password: string): string {
  return password.normalize("NFC");
}
