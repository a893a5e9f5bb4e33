import type { KeyValueChange, KeyValueStore } from "../../src/runtime/contract.ts";

/** A store in memory that can be made to fail: for tests of what is kept in it. */
export class MapStore implements KeyValueStore {
  readonly records = new Map<string, string>();
  /** What the next commit rejects with. */
  failure: Error | undefined;

  async get(key: string): Promise<unknown> {
    const text = this.records.get(key);
    return text === undefined ? undefined : JSON.parse(text);
  }

  async *list(prefix: string): AsyncGenerator<readonly [string, unknown]> {
    for (const key of [...this.records.keys()].sort())
      if (key.startsWith(prefix) && this.records.has(key)) yield [key, JSON.parse(this.records.get(key)!)];
  }

  async commit({ check = [], set = [], delete: gone = [] }: KeyValueChange): Promise<boolean> {
    await Promise.resolve();
    const { failure } = this;
    this.failure = undefined;
    if (failure) throw failure;
    const holds = check.every(([key, value]) => this.records.get(key) === JSON.stringify(value));
    if (!holds) return false;
    for (const key of gone) this.records.delete(key);
    for (const [key, value] of set) this.records.set(key, JSON.stringify(value));
    return true;
  }

  async close(): Promise<void> {}
}
