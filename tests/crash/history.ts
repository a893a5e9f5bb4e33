import type { KeyValueChange, KeyValueStore } from "../../src/runtime/contract.ts";
import { openStore } from "../../src/runtime/open-store.ts";
import { seededRandom } from "../seeded-random.ts";

/** Records by key, as JSON text. */
export type Records = ReadonlyMap<string, string>;

/** Stored twice in every commit, to detect partial commits. */
const COUNTERS = ["meta/count", "zzz/count"];
const KEYS = 400;

/**
 * A workload determined by its seed: the number of commits determines all records. Commits set
 * and delete several records each, of a few bytes to some pages.
 */
export class History {
  readonly #seed: number;
  readonly #after: Records[] = [new Map()];

  constructor(seed: number) {
    this.#seed = seed;
  }

  /** The change that commit `number` (from 1) does. */
  change(number: number): KeyValueChange {
    const random = seededRandom(this.#seed * 100_003 + number);
    const key = () => `item/${String(Math.floor(random() * KEYS)).padStart(6, "0")}`;
    const gone = random() < 0.3 ? [key(), key()] : [];
    const set = Array.from({ length: 1 + Math.floor(random() * 8) }, (_, i) => {
      // Members in the order of the alphabet, as a Redis server gets them.
      const bytes = random() < 0.05 ? 20_000 : Math.floor(random() * 600);
      return [key(), { i, number, text: "é".repeat(3) + "x".repeat(bytes) }] as const;
    });
    return { delete: gone, set: [...set, ...COUNTERS.map((one) => [one, number] as const)] };
  }

  /** All records after this number of commits. */
  after(commits: number): Records {
    while (this.#after.length <= commits) {
      const records = new Map(this.#after.at(-1));
      const { delete: gone = [], set = [] } = this.change(this.#after.length);
      for (const key of gone) records.delete(key);
      for (const [key, value] of set) records.set(key, JSON.stringify(value));
      this.#after.push(records);
    }
    return this.#after[commits]!;
  }

  /** Returns true if a record had this value (undefined: was missing) at a commit in `[from, to]`. */
  wasEver(key: string, json: string | undefined, from: number, to: number): boolean {
    for (let commits = to; commits >= from; commits--) if (this.after(commits).get(key) === json) return true;
    return false;
  }
}

/** Opens the SQLite store in a folder, or the store on a server if `place` is the URL of one. */
export function openPlace(place: string, warn: (message: string) => void): Promise<KeyValueStore> {
  return /^rediss?:/.test(place)
    ? openStore({ folder: "", kind: "redis", url: place, shared: false, warn })
    : openStore({ folder: place, kind: "sqlite", shared: false, warn });
}

/** All records of a store. */
export async function recordsOf(store: KeyValueStore): Promise<Records> {
  const records = new Map<string, string>();
  for await (const [key, value] of store.list("")) records.set(key, JSON.stringify(value));
  return records;
}

/** Compares two sets of records. */
export function areSame(one: Records, other: Records): boolean {
  return one.size === other.size && [...one].every(([key, json]) => other.get(key) === json);
}
