import { join } from "node:path";
import type { Log } from "../base/log.ts";
import type { KeyValueStore, Runtime, StoreOptions } from "../runtime/contract.ts";
import type { Config } from "../settings/settings.ts";
import { usageError } from "./args.ts";

/** Maximum size of a file in a backup, in bytes; transport files are the largest. */
export const MAX_BACKUP_FILE_BYTES = 64 * 1024 * 1024;

/** Marks the target of a migration that is not complete. */
export const MIGRATION_KEY = "meta/migration";

/** Returns the location of the database. `shared`: a command opens it while an engine may be running. */
export function storeOptions(
  config: Pick<Config, "dataDir" | "store">,
  log: Log,
  shared: boolean,
): StoreOptions {
  return {
    folder: join(config.dataDir, "library"),
    ...storePlace(config.store),
    shared,
    warn: (message) => log.warn(message),
  };
}

/** Returns the kind of a store and its server, from the setting `store`. */
function storePlace(store: string): Pick<StoreOptions, "kind" | "url"> {
  return store === "sqlite" || store === "memory" ? { kind: store } : { kind: "redis", url: store };
}

/** Opens the database for a command, with or without a running engine, and closes it after `work`. */
export async function withStore<T>(
  runtime: Runtime,
  config: Config,
  log: Log,
  work: (store: KeyValueStore) => Promise<T>,
): Promise<T> {
  if (config.store === "memory")
    throw usageError("store is memory: only the running engine can use that database");
  const store = await runtime.openStore(storeOptions(config, log, true));
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}
