import { Breather } from "./breather.ts";
import type { KeyValueChange, KeyValueStore } from "./contract.ts";
import { checkedChange, checkedKey, holds } from "./kv-values.ts";

/** Opens a store that is lost when the process ends, with the limits of the durable stores. */
export function openMemory(): KeyValueStore {
  const records = new Map<string, string>();
  let isClosed = false;
  const refuseClosed = () => {
    if (isClosed) throw new Error("the store is closed");
  };
  return {
    async get(key) {
      refuseClosed();
      const json = records.get(checkedKey(key));
      return json === undefined ? undefined : JSON.parse(json);
    },
    list: (prefix) => listRecords(() => records, prefix, refuseClosed),
    async commit(change: KeyValueChange) {
      refuseClosed();
      const checked = checkedChange(change);
      if (!checked.check.every(([key, canonical]) => holds(records.get(key), canonical))) return false;
      for (const key of checked.delete) records.delete(key);
      for (const [key, json] of checked.set) records.set(key, json);
      return true;
    },
    async close() {
      isClosed = true;
    },
  };
}

/** Yields the records of a prefix in byte order of the keys. `records` returns them, as JSON; `refuseClosed` throws if the store is closed. */
export async function* listRecords(
  records: () => ReadonlyMap<string, string>,
  prefix: string,
  refuseClosed: () => void,
): AsyncGenerator<readonly [key: string, value: unknown], void> {
  refuseClosed();
  const breather = new Breather();
  const keys: string[] = [];
  let isPlain = true;
  for (const key of records().keys()) {
    if (!key.startsWith(prefix)) continue;
    keys.push(key);
    isPlain &&= !/[\ud800-\uffff]/.test(key);
  }
  // Below the surrogates, the order of UTF-16 is that of UTF-8.
  keys.sort(isPlain ? undefined : byUtf8);
  for (const key of keys) {
    refuseClosed();
    const json = records().get(key);
    if (json !== undefined) yield [key, JSON.parse(json)];
    await breather.breathe();
  }
}

/** Compares by UTF-8 bytes, which is the order of the code points. */
function byUtf8(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
