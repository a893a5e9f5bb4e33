import { mkdir } from "node:fs/promises";
import { SluiceError } from "../base/errors.ts";
import type { BackupPart, KeyValueStore, StoreOptions } from "./contract.ts";
import { files } from "./files.ts";
import { openMemory } from "./kv-memory.ts";
import type { StorePaths } from "./kv-paths.ts";
import { storePaths } from "./kv-paths.ts";
import { asOpenError } from "./kv-sqlite-error.ts";
import type { TextLine } from "./kv-text.ts";

/** Opens a store; see `Runtime.openStore`. */
export async function openStore(options: StoreOptions): Promise<KeyValueStore> {
  const { kind, folder, warn, shared } = options;
  if (kind === "memory") return openMemory();
  if (kind === "redis") return (await import("./kv-redis.ts")).openRedis(options.url ?? "", options);
  const { takeOwnerLock, takeToolLock, tryLock } = await locks();
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const paths = storePaths(folder);
  const releaseTool = shared ? await takeToolLock(paths.toolLock) : undefined;
  let releaseOwner: (() => void) | undefined;
  const release = () => {
    releaseOwner?.();
    releaseTool?.();
  };
  try {
    // If no engine runs, a tool becomes the owner.
    releaseOwner = await (shared ? tryLock(paths.lock) : takeOwnerLock(paths.lock, paths.toolLock));
    const { openOwned, openShared } = await sqlite();
    if (releaseOwner === undefined) return await openShared(paths, warn, release);
    return await openOwned(paths, warn, release);
  } catch (error) {
    release();
    throw asOpenError(error, folder, await files.freeBytes(folder));
  }
}

/** Yields all records as text; see `Runtime.backupStore`. */
export async function* backupStore(
  options: StoreOptions,
  parts: AsyncIterable<BackupPart>,
): AsyncGenerator<Uint8Array> {
  // Opening checks the records unless an engine has done so.
  const store = await openStore({ ...options, shared: true });
  try {
    const { listText, snapshotText } = await snapshots();
    if (options.kind === "sqlite") yield* snapshotText(storePaths(options.folder).database, parts);
    else yield* listText(store, parts);
  } finally {
    await store.close();
  }
}

/** Reads a backup; see `Runtime.readBackup`. */
export async function readBackup(
  backup: AsyncIterable<Uint8Array>,
  onLine: (line: TextLine) => void | Promise<void>,
): Promise<void> {
  const { verifyBackup } = await restoring();
  await verifyBackup(backup, onLine);
}

/** Replaces all records by a backup; see `Runtime.restoreStore`. */
export async function restoreStore(
  options: StoreOptions,
  backup: () => AsyncIterable<Uint8Array>,
  overwrite: boolean,
  restorePart: (part: BackupPart) => Promise<void>,
): Promise<{ readonly records: number }> {
  if (options.kind !== "sqlite") {
    throw new SluiceError(
      "bad_configuration",
      `restore supports only the store sqlite, not ${options.kind}; use --store sqlite`,
    );
  }
  const { restoreInto, verifyBackup } = await restoring();
  await verifyBackup(backup());
  await mkdir(options.folder, { recursive: true, mode: 0o700 });
  const paths: StorePaths = storePaths(options.folder);
  const { takeOwnerLock } = await locks();
  const release = await takeOwnerLock(paths.lock, paths.toolLock);
  try {
    return await restoreInto(paths, backup(), overwrite, async (line: TextLine) => {
      if ("name" in line) await restorePart(line);
    });
  } finally {
    release();
  }
}

/** Takes the lock at `path` for this process; undefined if another process holds it. Rejects with `SluiceError` on an old Node. */
export async function lockPath(path: string): Promise<(() => void) | undefined> {
  return (await locks()).tryLock(path);
}

const locks = () => withSqlite(() => import("./kv-lock.ts"));
const sqlite = () => withSqlite(() => import("./kv-sqlite.ts"));
const snapshots = () => withSqlite(() => import("./kv-snapshot.ts"));
const restoring = () => withSqlite(() => import("./kv-restore.ts"));

/** Loads a module that needs `node:sqlite`, which old versions of Node lack; these can still run without a store. */
async function withSqlite<T>(load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    const { code } = error as { code?: unknown };
    if (code !== "ERR_UNKNOWN_BUILTIN_MODULE" && code !== "ERR_NO_SUCH_BUILTIN_MODULE") throw error;
    const message = `records and locks need node:sqlite, which Node ${process.versions.node} lacks: use Node 22.13 or newer, or Bun`;
    throw new SluiceError("bad_configuration", message, { cause: error });
  }
}
