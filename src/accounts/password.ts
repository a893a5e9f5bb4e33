import * as v from "valibot";
import { fromHex, toHex } from "../base/bytes.ts";
import type { ScryptCost } from "../runtime/contract.ts";
import { sameBytes } from "./same-secret.ts";

/** The record of a password: scrypt parameters and the derived key. */
export const passwordRecord = v.object({
  N: v.pipe(v.number(), v.integer(), v.minValue(2), v.maxValue(2 ** 20)),
  r: v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(32)),
  p: v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(16)),
  salt: v.pipe(v.string(), v.regex(/^[0-9a-f]{32}$/)),
  key: v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/)),
});
type PasswordRecord = v.InferOutput<typeof passwordRecord>;

/** OWASP recommends N = 2^17, p = 1, or this N with p = 3, which is as slow to guess and needs 32 MiB of memory. */
const COST = { N: 2 ** 15, r: 8, p: 3 };
const KEY_BYTES = 32;
const SALT_BYTES = 16;

/** Dependencies of {@link hashPassword} and {@link isPassword}. */
export interface PasswordDependencies {
  readonly scrypt: (password: string, salt: Uint8Array, cost: ScryptCost) => Promise<Uint8Array>;
  readonly randomBytes: (length: number) => Uint8Array;
}

/** Derives the record of a new password. */
export async function hashPassword(
  password: string,
  dependencies: PasswordDependencies,
): Promise<PasswordRecord> {
  const salt = dependencies.randomBytes(SALT_BYTES);
  const key = await dependencies.scrypt(normalised(password), salt, { ...COST, keyBytes: KEY_BYTES });
  return { ...COST, salt: toHex(salt), key: toHex(key) };
}

/** Compares a password with its record. Without a record it takes as long and returns false. */
export async function isPassword(
  password: string,
  kept: PasswordRecord | undefined,
  dependencies: PasswordDependencies,
): Promise<boolean> {
  const { N, r, p } = kept ?? COST;
  const salt = fromHex(kept?.salt ?? "")!;
  const key = await dependencies.scrypt(normalised(password), salt, { N, r, p, keyBytes: KEY_BYTES });
  return sameBytes(key, fromHex(kept?.key ?? "")!);
}

/** Different keyboards encode the same letter differently (RFC 8265 4.2.2). */
function normalised(password: string): string {
  return password.normalize("NFC");
}
