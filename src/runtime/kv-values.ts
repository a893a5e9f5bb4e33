import { MAX_COMMIT_BYTES, MAX_COMMIT_KEYS, MAX_VALUE_BYTES } from "../base/store-limits.ts";
import type { KeyValueChange } from "./contract.ts";

/** Deno KV takes keys of 2 KiB; so many characters are at most 1.5 KiB of UTF-8. */
const MAX_KEY_CHARACTERS = 512;

/** A change that keeps every limit, with its values as JSON text. */
export interface CheckedChange {
  /** What must still be there, as {@link canonicalJson}; undefined: absent. */
  readonly check: readonly (readonly [key: string, canonical: string | undefined])[];
  /** Each key once, with the value that was given last. */
  readonly set: ReadonlyMap<string, string>;
  readonly delete: ReadonlySet<string>;
}

/**
 * Measures a change against `base/store-limits.ts` and writes its values as JSON, before any of it is done. Throws
 * `TypeError` for what is not JSON and for keys that are no text, `RangeError` for what is too large.
 */
export function checkedChange({ check = [], set = [], delete: gone = [] }: KeyValueChange): CheckedChange {
  if (set.length + gone.length > MAX_COMMIT_KEYS) {
    throw new RangeError(
      `expected at most ${MAX_COMMIT_KEYS} keys in a commit, got ${set.length + gone.length}`,
    );
  }
  let bytes = 0;
  const texts = new Map<string, string>();
  for (const [key, value] of set) {
    const json = jsonOf(key, value);
    bytes += Buffer.byteLength(checkedKey(key)) + Buffer.byteLength(json);
    texts.set(key, json);
  }
  for (const key of gone) bytes += Buffer.byteLength(checkedKey(key));
  if (bytes > MAX_COMMIT_BYTES) {
    throw new RangeError(`expected at most ${MAX_COMMIT_BYTES} bytes in a commit, got ${bytes}`);
  }
  return {
    check: check.map(([key, value]) => [
      checkedKey(key),
      value === undefined ? undefined : canonicalJson(value),
    ]),
    set: texts,
    delete: new Set(gone),
  };
}

/** The key itself, where it may be one. A lone surrogate or a zero would not come back from every store as it went in. */
export function checkedKey(key: string): string {
  if (typeof key !== "string" || key.includes("\0") || !key.isWellFormed()) {
    throw new TypeError("expected a key of well-formed text without zero characters");
  }
  if (key.length < 1 || key.length > MAX_KEY_CHARACTERS) {
    throw new RangeError(`expected a key of 1 to ${MAX_KEY_CHARACTERS} characters, got ${key.length}`);
  }
  return key;
}

/** A value as JSON whose members are sorted: two values are the same JSON where these texts are equal. */
export function canonicalJson(value: unknown): string {
  const json = JSON.stringify(value);
  if (json === undefined) throw new TypeError("expected a JSON value to compare with");
  return JSON.stringify(JSON.parse(json), (_key, inner) => (isObject(inner) ? sorted(inner) : inner));
}

/** Whether stored JSON text (undefined: absent) is what a check expects. */
export function holds(json: string | undefined, canonical: string | undefined): boolean {
  if (json === undefined || canonical === undefined) return json === canonical;
  return json === canonical || canonicalJson(JSON.parse(json)) === canonical;
}

function jsonOf(key: string, value: unknown): string {
  const json = JSON.stringify(value);
  if (json === undefined) throw new TypeError(`expected a JSON value for ${key}; to remove a key, delete it`);
  const size = Buffer.byteLength(json);
  if (size > MAX_VALUE_BYTES) {
    throw new RangeError(`expected at most ${MAX_VALUE_BYTES} bytes for ${key}, got ${size}`);
  }
  return json;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Without a prototype, so that a member named `__proto__` is one like any other. */
function sorted(value: Record<string, unknown>): Record<string, unknown> {
  const copy = Object.create(null) as Record<string, unknown>;
  for (const key of Object.keys(value).sort()) copy[key] = value[key];
  return copy;
}
