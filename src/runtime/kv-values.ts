import { MAX_COMMIT_BYTES, MAX_COMMIT_KEYS, MAX_VALUE_BYTES } from "../base/store-limits.ts";
import type { KeyValueChange } from "./contract.ts";

/** At most 1.5 KiB of UTF-8; Deno KV allows keys of 2 KiB. */
const MAX_KEY_CHARACTERS = 512;

/** A change within all limits, with its values as JSON text. */
export interface CheckedChange {
  /** Expected values as {@link canonicalJson}; undefined if the key must be absent. */
  readonly check: readonly (readonly [key: string, canonical: string | undefined])[];
  /** Each key once, with its last value, as {@link canonicalJson}. */
  readonly set: ReadonlyMap<string, string>;
  readonly delete: ReadonlySet<string>;
}

/**
 * Validates a change against `base/store-limits.ts` and encodes its values. Throws `TypeError` for invalid keys and
 * values that are not JSON, `RangeError` if a limit is exceeded.
 */
export function checkedChange({ check = [], set = [], delete: deleted = [] }: KeyValueChange): CheckedChange {
  const keys = set.length + deleted.length;
  if (keys > MAX_COMMIT_KEYS)
    throw new RangeError(`expected at most ${MAX_COMMIT_KEYS} keys in a commit, got ${keys}`);
  let bytes = 0;
  const texts = new Map<string, string>();
  for (const [key, value] of set) {
    const json = jsonOf(key, value);
    bytes += Buffer.byteLength(checkedKey(key)) + Buffer.byteLength(json);
    texts.set(key, json);
  }
  for (const key of deleted) bytes += Buffer.byteLength(checkedKey(key));
  if (bytes > MAX_COMMIT_BYTES) {
    throw new RangeError(`expected at most ${MAX_COMMIT_BYTES} bytes in a commit, got ${bytes}`);
  }
  return {
    check: check.map(([key, value]) => [
      checkedKey(key),
      value === undefined ? undefined : expectedJson(value),
    ]),
    set: texts,
    delete: new Set(deleted),
  };
}

/** Returns the key, or throws if it is invalid. Some stores would change lone surrogates and zero characters. */
export function checkedKey(key: string): string {
  if (typeof key !== "string" || key.includes("\0") || !key.isWellFormed()) {
    throw new TypeError("expected a key of well-formed text without zero characters");
  }
  if (key.length < 1 || key.length > MAX_KEY_CHARACTERS) {
    throw new RangeError(`expected a key of 1 to ${MAX_KEY_CHARACTERS} characters, got ${key.length}`);
  }
  return key;
}

/**
 * Encodes a value with sorted members, so that equal values have equal texts; undefined if it is not JSON. Most values are sorted already, and a
 * look at them takes a seventh of the time of sorting.
 */
function canonicalJson(value: unknown): string | undefined {
  const json = JSON.stringify(value);
  if (json === undefined || isSorted(value)) return json;
  return JSON.stringify(JSON.parse(json), (_key, inner) => (isObject(inner) ? sorted(inner) : inner));
}

function isSorted(value: unknown): boolean {
  if (Array.isArray(value)) return value.every(isSorted);
  if (!isObject(value)) return true;
  if ("toJSON" in value) return false;
  let last = "";
  for (const key of Object.keys(value)) {
    if (key < last || !isSorted(value[key])) return false;
    last = key;
  }
  return true;
}

/** Returns true if stored JSON text (undefined: absent) equals the expected value of a check. */
export function holds(json: string | undefined, canonical: string | undefined): boolean {
  if (json === undefined || canonical === undefined) return json === canonical;
  return json === canonical || canonicalJson(JSON.parse(json)) === canonical;
}

function expectedJson(value: unknown): string {
  const json = canonicalJson(value);
  if (json === undefined) throw new TypeError("expected a JSON value in a check");
  return json;
}

function jsonOf(key: string, value: unknown): string {
  const json = canonicalJson(value);
  if (json === undefined) throw new TypeError(`expected a JSON value for ${key}; use delete to remove a key`);
  const size = Buffer.byteLength(json);
  if (size > MAX_VALUE_BYTES) {
    throw new RangeError(`expected at most ${MAX_VALUE_BYTES} bytes for ${key}, got ${size}`);
  }
  return json;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The copy has no prototype, so that a member named `__proto__` needs no special case. */
function sorted(value: Record<string, unknown>): Record<string, unknown> {
  const copy = Object.create(null) as Record<string, unknown>;
  for (const key of Object.keys(value).sort()) copy[key] = value[key];
  return copy;
}
