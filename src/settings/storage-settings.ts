import { bucketUrl } from "./bucket-url.ts";
import { size, storeUrl, text } from "./kinds.ts";
import { setting } from "./setting.ts";

/** Settings of the data folder and the caches. */
export function storageSettings(folders: { readonly dataDir: string | undefined }) {
  return {
    dataDir: setting(
      "data-dir",
      text("FOLDER", "a writable folder"),
      folders.dataDir ?? "",
      "Folder of the cache, the database and the keys",
      "$XDG_DATA_HOME/sluice",
    ),
    store: setting(
      "store",
      storeUrl(),
      "sqlite",
      "Database for playlists, tokens and accounts: sqlite, memory (keeps nothing after the engine exits), or the URL of a Redis or Valkey server",
    ),
    cacheLimit: setting(
      "cache-limit",
      size(),
      20e9,
      "Maximum size of the disk cache, transport files included; 0 turns the disk cache off",
    ),
    cache: setting(
      "cache",
      bucketUrl(),
      undefined,
      "Second level of the cache, which several engines can share: the URL of a bucket on an S3-compatible server",
      "none",
    ),
    memoryLimit: setting(
      "memory-limit",
      size(16 * 2 ** 20),
      16 * 2 ** 20,
      "Memory for pieces that are being downloaded",
    ),
  } as const;
}
