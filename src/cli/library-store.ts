import type { Log } from "../base/log.ts";
import type { KeyValueStore, Runtime } from "../runtime/contract.ts";
import type { Config } from "../settings.ts";
import { storePlace } from "./store-place.ts";
import { usageError } from "./usage.ts";

/** Opens the records for a command, beside a running engine or without one; closes them when the work is done. */
export async function withLibraryStore<T>(
  runtime: Runtime,
  config: Config,
  log: Log,
  work: (store: KeyValueStore) => Promise<T>,
): Promise<T> {
  if (config.store === "memory") throw usageError("store is memory: a running engine keeps it to itself");
  const store = await runtime.openStore(storePlace(config, log, true));
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}
