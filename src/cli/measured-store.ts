import type { Clock, KeyValueStore } from "../runtime/contract.ts";

/** The calls of one operation of a store since the start. */
export interface StoreFigures {
  readonly operation: "get" | "commit";
  readonly calls: number;
  readonly failures: number;
  /** The time of all calls together. */
  readonly seconds: number;
}

/** A store that counts and times its calls. */
export interface MeasuredStore extends KeyValueStore {
  figures(): readonly StoreFigures[];
}

/** Wraps a store. Lists are not measured, because their time is mostly that of the reader. */
export function measuredStore(store: KeyValueStore, clock: Pick<Clock, "now">): MeasuredStore {
  const get = { operation: "get", calls: 0, failures: 0, seconds: 0 } as const;
  const figures = { get: { ...get }, commit: { ...get, operation: "commit" as const } };
  const measured = async <T>(operation: "get" | "commit", call: Promise<T>): Promise<T> => {
    const figure: { calls: number; failures: number; seconds: number } = figures[operation];
    const begun = clock.now();
    try {
      return await call;
    } catch (error) {
      figure.failures++;
      throw error;
    } finally {
      figure.calls++;
      figure.seconds += (clock.now() - begun) / 1000;
    }
  };
  return {
    get: (key) => measured("get", store.get(key)),
    commit: (change) => measured("commit", store.commit(change)),
    list: (prefix) => store.list(prefix),
    ...(store.watch && { watch: (prefix, changed) => store.watch!(prefix, changed) }),
    ...(store.refuseChanges && { refuseChanges: () => store.refuseChanges!() }),
    close: () => store.close(),
    figures: () => [figures.get, figures.commit],
  };
}
