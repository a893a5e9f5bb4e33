import { SluiceError } from "../base/errors.ts";
import type { KeyValueChange, KeyValueStore } from "../runtime/contract.ts";
import { SerialQueue } from "./serial-queue.ts";

/** Attempts at a change of a record that other processes change at the same time. */
export const MAX_TRIES = 20;

/** A record that must have this value while a job runs: it ends when another engine takes the job over (fencing). */
export type Fence = readonly [key: string, value: unknown];

/**
 * Changes a record: `change` returns the new value, or undefined to leave it. Called again if another process changed the record meanwhile. Rejects
 * with `too_many` if that happens {@link MAX_TRIES} times.
 */
export async function changeRecord(
  store: Pick<KeyValueStore, "get" | "commit">,
  key: string,
  change: (value: unknown) => unknown,
  fence?: Fence,
): Promise<void> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const before = await store.get(key);
    const after = change(before);
    if (after === undefined) return;
    if (await commitFenced(store, { check: [[key, before]], set: [[key, after]] }, fence)) return;
  }
  throw new SluiceError("too_many", "other engines change the same record; try again");
}

/** Commits a change while the fence holds. Rejects with `cancelled` if it does not. */
export async function commitFenced(
  store: Pick<KeyValueStore, "get" | "commit">,
  change: KeyValueChange,
  fence: Fence | undefined,
): Promise<boolean> {
  if (fence === undefined) return store.commit(change);
  const isDone = await store.commit({ ...change, check: [...(change.check ?? []), fence] });
  if (!isDone && !isEqual(await store.get(fence[0]), fence[1]))
    throw new SluiceError("cancelled", "another engine has taken this job over");
  return isDone;
}

/** Calls `apply` with each record of a prefix that another process has changed, one after another; undefined if it was deleted. */
export function followRecords(
  store: KeyValueStore,
  prefix: string,
  apply: (key: string, value: unknown) => void,
): void {
  const queue = new SerialQueue();
  const read = async (keys: readonly string[]) => {
    for (const key of keys) apply(key, await store.get(key));
  };
  // Reads fail only after the store was closed.
  store.watch?.(prefix, (keys) => void queue.run(() => read(keys)).catch(() => {}));
}

/** Compares values that were read from the store: their members have the same order. */
export function isEqual(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
