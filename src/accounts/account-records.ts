import * as v from "valibot";
import { SluiceError } from "../base/errors.ts";
import type { UnixSeconds } from "../base/time.ts";
import { encodeUtf8 } from "../base/utf8.ts";
import type { AccountLimits } from "./account-contract.ts";
import { passwordRecord } from "./password.ts";

/** Keys in the store: accounts, the current session, and the key that signs tokens. */
export const ACCOUNT_PREFIX = "account/user/";
export const SESSION_KEY = "account/session";
export const SIGNING_KEY = "account/key";

const seconds = v.pipe(
  v.number(),
  v.safeInteger(),
  v.transform((value) => value as UnixSeconds),
);

/** A local account. */
export const accountRecord = v.object({
  email: v.pipe(v.string(), v.nonEmpty()),
  password: passwordRecord,
  createdAt: seconds,
  /** Absent in records of earlier versions. */
  maxStreams: v.optional(v.pipe(v.number(), v.safeInteger(), v.minValue(0)), 0),
  groups: v.optional(v.array(v.string()), []),
});
export type AccountRecord = v.InferOutput<typeof accountRecord>;

/** The current session. */
export const sessionRecord = v.object({
  method: v.picklist(["engine", "google"]),
  login: v.pipe(v.string(), v.nonEmpty()),
  since: seconds,
});
export type SessionRecord = v.InferOutput<typeof sessionRecord>;

/** The private key that signs `ace_auth_token`, as a JWK (RFC 8037 2). */
export const signingKeyRecord = v.object({
  kty: v.literal("OKP"),
  crv: v.literal("Ed25519"),
  x: v.pipe(v.string(), v.regex(/^[\w-]{43}$/)),
  d: v.pipe(v.string(), v.regex(/^[\w-]{43}$/)),
});
export type SigningKey = v.InferOutput<typeof signingKeyRecord>;

/** RFC 5321 4.5.3.1.3. */
const MAX_EMAIL_BYTES = 254;
/** Allowed length of a password; longer ones only cost time. */
export const PASSWORD_CHARACTERS = { least: 8, most: 1_000 };

/** More streams than an engine serves, and more groups than a user names. */
const MAX_LIMITS = { streams: 1_000, groups: 100, groupCharacters: 200 };

/** Normalizes an e-mail address (NFKC, lower case); returns undefined if it is invalid. */
export function normalEmail(text: string): string | undefined {
  if (text.length > MAX_EMAIL_BYTES) return undefined;
  const email = text.normalize("NFKC").trim().toLowerCase();
  const isEmail = /^[^\s@\p{Cc}]+@[^\s@\p{Cc}]+$/u.test(email);
  return isEmail && encodeUtf8(email).length <= MAX_EMAIL_BYTES ? email : undefined;
}

/** Normalizes an e-mail address; throws `bad_parameter` if it is invalid. The error does not repeat the text, which may be
 * a password in the wrong field. */
export function requireEmail(text: string): string {
  const email = normalEmail(text);
  if (email === undefined)
    throw new SluiceError("bad_parameter", "email: expected an address like me@example.org");
  return email;
}

/** Throws `bad_parameter` if a password is too short or too long. */
export function requirePassword(password: string): void {
  const length = [...password.normalize("NFC")].length;
  const { least, most } = PASSWORD_CHARACTERS;
  if (length >= least && length <= most) return;
  throw new SluiceError("bad_parameter", `password: expected ${least} to ${most} characters, got ${length}`);
}

/** Throws `bad_parameter` if limits are out of range. */
export function requireLimits({ maxStreams, groups }: AccountLimits): void {
  const { streams, groups: count, groupCharacters } = MAX_LIMITS;
  if (!Number.isInteger(maxStreams) || maxStreams < 0 || maxStreams > streams)
    throw new SluiceError("bad_parameter", `streams: expected 0 to ${streams}`);
  if (groups.length > count || groups.some((name) => name === "" || name.length > groupCharacters))
    throw new SluiceError(
      "bad_parameter",
      `group: expected at most ${count} names of 1 to ${groupCharacters} characters`,
    );
}
