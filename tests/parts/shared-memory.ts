import type { KeyValueStore } from "../../src/runtime/contract.ts";
import { openMemory } from "../../src/runtime/kv-memory.ts";

/** Stores in memory that several engines share, as those of a Redis server. Each call opens the store for one more engine. */
export function sharedMemory(): () => KeyValueStore {
  const memory = openMemory();
  const watchers = new Set<{ store: KeyValueStore; prefix: string; changed: (keys: string[]) => void }>();
  return () => {
    const store: KeyValueStore = {
      get: (key) => memory.get(key),
      list: (prefix) => memory.list(prefix),
      async commit(change) {
        const isDone = await memory.commit(change);
        const keys = [...(change.delete ?? []), ...(change.set ?? []).map(([key]) => key)];
        if (isDone)
          setImmediate(() => {
            for (const watcher of watchers) {
              const some = keys.filter((key) => key.startsWith(watcher.prefix));
              if (watcher.store !== store && some.length > 0) watcher.changed(some);
            }
          });
        return isDone;
      },
      watch(prefix, changed) {
        const watcher = { store, prefix, changed };
        watchers.add(watcher);
        return () => watchers.delete(watcher);
      },
      async close() {
        for (const watcher of watchers) if (watcher.store === store) watchers.delete(watcher);
      },
    };
    return store;
  };
}
