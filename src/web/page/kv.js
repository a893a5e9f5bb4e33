// @ts-check
import { promisifyRequest } from "idb-keyval";

/**
 * The browser's KeyValueStore: records in IndexedDB, with the limits of all other stores.
 *
 * @typedef {import("../../runtime/contract.ts").KeyValueStore} KeyValueStore
 * @typedef {import("../../runtime/contract.ts").KeyValueChange} KeyValueChange
 */

const RECORDS = "records";
/** The same figures as in base/store-limits.ts. */
const MAX_VALUE_BYTES = 60 * 1024;
const MAX_COMMIT_KEYS = 500;
const MAX_COMMIT_BYTES = 512 * 1024;
const MAX_KEY_CHARACTERS = 512;
/** Records that are read in one transaction. */
const BATCH = 100;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/**
 * Opens the store of this name, and makes it where there is none.
 *
 * @param {string} name
 * @returns {Promise<KeyValueStore>}
 */
export async function openKeyValueStore(name) {
  const opening = indexedDB.open(name);
  opening.onupgradeneeded = () => opening.result.createObjectStore(RECORDS);
  const database = await promisifyRequest(opening);
  // Another page may want to delete or change it; this one must not be in the way.
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
 * One transaction: all of the change, or nothing. IndexedDB does those that write one after another.
 *
 * @param {IDBTransaction} transaction
 * @param {ReturnType<typeof checkedChange>} change
 */
async function commitIn(transaction, { check, set, gone }) {
  const ended = promisifyRequest(transaction);
  // It fails with the request that fails first; that error is the one to tell.
  ended.catch(() => {});
  const records = transaction.objectStore(RECORDS);
  const held = await Promise.all(check.map(([key]) => promisifyRequest(records.get(key))));
  const isFitting = check.every(([, canonical], i) => {
    const json = held[i];
    return json === undefined ? canonical === undefined : canonicalJson(JSON.parse(json)) === canonical;
  });
  if (isFitting) {
    for (const key of gone) records.delete(key);
    for (const [key, json] of set) records.put(json, key);
  }
  await ended;
  return isFitting;
}

/**
 * Measures a change, and writes its values as JSON, before any of it is done.
 *
 * @param {KeyValueChange} change
 */
function checkedChange({ check = [], set = [], delete: gone = [] }) {
  if (set.length + gone.length > MAX_COMMIT_KEYS) {
    throw new RangeError(`expected at most ${MAX_COMMIT_KEYS} keys in a commit`);
  }
  let bytes = 0;
  const checked = {
    check: check.map(
      ([key, value]) =>
        /** @type {const} */ ([keyOf(key), value === undefined ? undefined : canonicalJson(value)]),
    ),
    gone: gone.map(keyOf),
    set: set.map(([key, value]) => {
      const json = jsonOf(key, value);
      bytes += encoder.encode(json).length;
      return /** @type {const} */ ([keyOf(key), json]);
    }),
  };
  for (const key of [...checked.gone, ...checked.set.map(([key]) => key)]) bytes += key.length;
  if (bytes > MAX_COMMIT_BYTES) {
    throw new RangeError(`expected at most ${MAX_COMMIT_BYTES} bytes in a commit, got ${bytes}`);
  }
  return checked;
}

/**
 * Keys are kept as UTF-8: so IndexedDB sorts them by their bytes, as the other stores do.
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
 * A value as JSON whose members are sorted.
 *
 * @param {unknown} value
 */
function canonicalJson(value) {
  return JSON.stringify(JSON.parse(JSON.stringify(value)), (_key, inner) => {
    if (typeof inner !== "object" || inner === null || Array.isArray(inner)) return inner;
    // Without a prototype, so that a member named `__proto__` is one like any other.
    const sorted = Object.create(null);
    for (const key of Object.keys(inner).sort()) sorted[key] = inner[key];
    return sorted;
  });
}
