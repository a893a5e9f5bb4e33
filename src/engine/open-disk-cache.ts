import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { pieceCheck } from "../protocol/swarm/piece-check.ts";
import type { Runtime } from "../runtime/contract.ts";
import { DiskCache, type DiskCacheDependencies } from "../storage/disk-cache.ts";
import type { EngineSettings } from "../transfer/contract.ts";

type CacheRuntime = Pick<Runtime, "files" | "clock" | "sha1" | "sha256" | "lock">;
type CacheUse = Pick<DiskCacheDependencies, "memoryChanged" | "isKept"> & {
  readonly limitBytes: () => number;
};
type CacheSettings = Pick<EngineSettings, "cacheLimitBytes" | "dataDir">;

/** Opens the disk cache; undefined if it is turned off or cannot be opened. `memoryChanged` is called when a piece in memory may be
 * evicted, `isKept` returns true for content that is not evicted, `limitBytes` the present size limit. */
export async function openDiskCache(
  { files, clock, sha1, sha256, lock }: CacheRuntime,
  { cacheLimitBytes, dataDir }: CacheSettings,
  log: Log,
  { memoryChanged, isKept, limitBytes }: CacheUse,
): Promise<DiskCache | undefined> {
  if (cacheLimitBytes === 0) return undefined;
  const path = `${dataDir}/cache`;
  try {
    return await DiskCache.open({
      files,
      clock,
      isRight: pieceCheck(sha1, sha256),
      log,
      path,
      get limitBytes() {
        return limitBytes();
      },
      lock: async () => {
        await (await files.open(`${path}.lock`)).close(); // Creates the data folder for the lock.
        return lock(`${path}.lock`);
      },
      memoryChanged,
      isKept,
    });
  } catch (error) {
    log.warn("disk cache unavailable: pieces are kept in memory only", { reason: messageOf(error) });
    return undefined;
  }
}

/** Enough for the records and the journal of the database. */
const FREED_BYTES = 64 * 1024 * 1024;

/** Removes the least recently read content from the disk cache, because the disk is full. Returns the number of freed bytes; 0 if the
 * cache is empty, turned off, or in use by another process. */
export async function freeDiskCache(
  runtime: CacheRuntime,
  settings: CacheSettings,
  log: Log,
): Promise<number> {
  const cache = await openDiskCache(runtime, settings, log, {
    memoryChanged() {},
    // The records of what is kept cannot be read yet.
    isKept: () => false,
    limitBytes: () => settings.cacheLimitBytes,
  });
  const freed = (await cache?.free(FREED_BYTES)) ?? 0;
  await cache?.close();
  return freed;
}
