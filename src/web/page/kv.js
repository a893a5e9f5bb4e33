// @ts-check
import { promisifyRequest } from "idb-keyval";

/**
 * The KeyValueStore of the browser: records in IndexedDB, with the same limits as all other implementations.
 *
 * @typedef {import("../../runtime/contract.ts").KeyValueStore} KeyValueStore
 * @typedef {import("../../runtime/contract.ts").KeyValueChange} KeyValueChange
 */

const RECORDS = "records";
/** The same limits as in base/store-limits.ts. */
const MAX_VALUE_BYTES = 60 * 1024;
const MAX_COMMIT_KEYS = 500;
const MAX_COMMIT_BYTES = 512 * 1024;
const MAX_KEY_CHARACTERS = 512;
/** The number of records read in one transaction. */
const BATCH = 100;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/**
 * Opens the store with this name, or creates it.
 *
 * @param {string} name
 * @returns {Promise<KeyValueStore>}
 */
export async function openKeyValueStore(name) {
  const opening = indexedDB.open(name);
  opening.onupgradeneeded = () => opening.result.createObjectStore(RECORDS);
  const database = await promisifyRequest(opening);
  // Lets another page delete or upgrade the database.
  database.onversionchange = () => database.close();
  let isClosed = false;
  /** @type {Set<Promise<unknown>>} */
  const running = new Set();

  /** @param {IDBTransactionMode} mode */
  function begin(mode) {
    if (isClosed) throw new Error("the store is closed");
    return database.transaction(RECORDS, mode, { durability: "strict" });
  }

  return {
    async get(key) {
      const json = await promisifyRequest(begin("readonly").objectStore(RECORDS).get(keyOf(key)));
      return json === undefined ? undefined : JSON.parse(json);
    },

    async *list(prefix) {
      /** @type {IDBValidKey | undefined} */
      let last;
      for (;;) {
        const range = last
          ? IDBKeyRange.lowerBound(last, true)
          : IDBKeyRange.lowerBound(encoder.encode(prefix));
        const records = begin("readonly").objectStore(RECORDS);
        const [keys, values] = await Promise.all([
          promisifyRequest(records.getAllKeys(range, BATCH)),
          promisifyRequest(records.getAll(range, BATCH)),
        ]);
        for (const [i, bytes] of keys.entries()) {
          const key = decoder.decode(/** @type {ArrayBuffer} */ (bytes));
          if (!key.startsWith(prefix)) return;
          yield/** @type {const} */ ([key, JSON.parse(values[i])]);
        }
        if (keys.length < BATCH) return;
        last = keys.at(-1);
      }
    },

    async commit(change) {
      const checked = checkedChange(change);
      const done = commitIn(begin("readwrite"), checked);
      running.add(done);
      try {
        return await done;
      } finally {
        running.delete(done);
      }
    },

    async close() {
      isClosed = true;
      await Promise.allSettled(running);
      database.close();
    },
  };
}

/**
 * Applies all of a change or nothing, in one transaction. IndexedDB runs write transactions one after another.
 *
 * @param {IDBTransaction} transaction
 * @param {ReturnType<typeof checkedChange>} change
 */
async function commitIn(transaction, { check, set, deleted }) {
  const ended = promisifyRequest(transaction);
  // The transaction fails together with its first failed request, and that request's error is the one to report.
  ended.catch(() => {});
  const records = transaction.objectStore(RECORDS);
  const stored = await Promise.all(check.map(([key]) => promisifyRequest(records.get(key))));
  const isMatch = check.every(([, canonical], i) => {
    const json = stored[i];
    return json === undefined ? canonical === undefined : canonicalJson(JSON.parse(json)) === canonical;
  });
  if (isMatch) {
    for (const key of deleted) records.delete(key);
    for (const [key, json] of set) records.put(json, key);
  }
  await ended;
  return isMatch;
}

/**
 * Checks a change against the limits and serializes its values, before anything is written.
 *
 * @param {KeyValueChange} change
 */
function checkedChange({ check = [], set = [], delete: deleted = [] }) {
  if (set.length + deleted.length > MAX_COMMIT_KEYS) {
    throw new RangeError(`expected at most ${MAX_COMMIT_KEYS} keys in a commit`);
  }
  let bytes = 0;
  const checked = {
    check: check.map(
      ([key, value]) =>
        /** @type {const} */ ([keyOf(key), value === undefined ? undefined : canonicalJson(value)]),
    ),
    deleted: deleted.map(keyOf),
    set: set.map(([key, value]) => {
      const json = jsonOf(key, value);
      bytes += encoder.encode(json).length;
      return /** @type {const} */ ([keyOf(key), json]);
    }),
  };
  for (const key of [...checked.deleted, ...checked.set.map(([key]) => key)]) bytes += key.length;
  if (bytes > MAX_COMMIT_BYTES) {
    throw new RangeError(`expected at most ${MAX_COMMIT_BYTES} bytes in a commit, got ${bytes}`);
  }
  return checked;
}

/**
 * Encodes a key as UTF-8, so that IndexedDB sorts keys by their bytes, as the other stores do.
 *
 * @param {string} key
 */
function keyOf(key) {
  if (typeof key !== "string" || key.includes("\0") || /\p{Surrogate}/u.test(key)) {
    throw new TypeError("expected a key of well-formed text without zero characters");
  }
  if (key.length < 1 || key.length > MAX_KEY_CHARACTERS) {
    throw new RangeError(`expected a key of 1 to ${MAX_KEY_CHARACTERS} characters, got ${key.length}`);
  }
  return encoder.encode(key);
}

/**
 * @param {string} key
 * @param {unknown} value
 */
function jsonOf(key, value) {
  const json = JSON.stringify(value);
  if (json === undefined) throw new TypeError(`expected a JSON value for ${key}`);
  if (encoder.encode(json).length > MAX_VALUE_BYTES) {
    throw new RangeError(`expected at most ${MAX_VALUE_BYTES} bytes for ${key}`);
  }
  return json;
}

/**
 * Serializes a value with sorted members, so that equal values have equal text.
 *
 * @param {unknown} value
 */
function canonicalJson(value) {
  return JSON.stringify(JSON.parse(JSON.stringify(value)), (_key, inner) => {
    if (typeof inner !== "object" || inner === null || Array.isArray(inner)) return inner;
    // No prototype, so that a member named `__proto__` is stored like any other.
    const sorted = Object.create(null);
    for (const key of Object.keys(inner).sort()) sorted[key] = inner[key];
    return sorted;
  });
}
