import { isDeepStrictEqual } from "node:util";
import { MAX_COMMIT_BYTES, MAX_COMMIT_KEYS, MAX_VALUE_BYTES } from "../../src/base/store-limits.ts";
import type { KeyValueChange, KeyValueStore } from "../../src/runtime/contract.ts";

/** A store in memory that counts calls and can be made to fail. */
export class MapStore implements KeyValueStore {
  readonly records = new Map<string, string>();
  commits = 0;
  keysWritten = 0;
  reads = 0;
  /** The next commits fail with this, and change nothing. */
  failure: Error | undefined;

  async get(key: string): Promise<unknown> {
    this.reads++;
    return parse(this.records.get(key));
  }

  async *list(prefix: string): AsyncIterable<readonly [key: string, value: unknown]> {
    for (const key of [...this.records.keys()].filter((name) => name.startsWith(prefix)).sort())
      yield [key, parse(this.records.get(key))];
  }

  async commit({ check = [], set = [], delete: gone = [] }: KeyValueChange): Promise<boolean> {
    if (this.failure) throw this.failure;
    const entries = set.map(([key, value]) => [key, JSON.stringify(value)] as const);
    const bytes = entries.reduce((sum, [, json]) => sum + Buffer.byteLength(json), 0);
    if (entries.length + gone.length > MAX_COMMIT_KEYS) throw new RangeError("too many keys");
    if (bytes > MAX_COMMIT_BYTES || entries.some(([, json]) => Buffer.byteLength(json) > MAX_VALUE_BYTES))
      throw new RangeError("too many bytes");
    for (const [key, value] of check)
      if (!isDeepStrictEqual(parse(this.records.get(key)), value)) return false;
    for (const key of gone) this.records.delete(key);
    for (const [key, json] of entries) this.records.set(key, json);
    this.commits++;
    this.keysWritten += entries.length + gone.length;
    return true;
  }

  async close(): Promise<void> {}
}

function parse(json: string | undefined): unknown {
  return json === undefined ? undefined : JSON.parse(json);
}
