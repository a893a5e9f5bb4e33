import { join } from "node:path";
import type { Log } from "../base/log.ts";
import type { StoreOptions } from "../runtime/contract.ts";
import type { Config } from "../settings.ts";

/** Where the records of this configuration are, for their owner, or (`shared`) for a tool beside it. */
export function storePlace(config: Config, log: Log, shared: boolean): StoreOptions {
  return {
    folder: join(config.dataDir, "library"),
    kind: config.store,
    shared,
    warn: (message) => log.warn(message),
  };
}

/** No file that a backup takes along is larger: transport files are the largest. */
export const MAX_KEPT_BYTES = 64 * 1024 * 1024;
