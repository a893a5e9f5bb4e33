import { mkdir } from "node:fs/promises";
import { SluiceError } from "../base/errors.ts";
import type { BackupPart, KeyValueStore, StoreOptions } from "./contract.ts";
import { openDenoKv } from "./kv-deno.ts";
import { openMemory } from "./kv-memory.ts";
import { type Places, placesIn } from "./kv-places.ts";
import type { TextLine } from "./kv-text.ts";

/** Opens the store of the kind that is asked for; see `Runtime.openStore`. */
export async function openStore(options: StoreOptions): Promise<KeyValueStore> {
  const { kind, folder, warn, shared } = options;
  if (kind === "memory") return openMemory();
  const { takeOwnerLock, takeToolLock, tryLock } = await locks();
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const places = placesIn(folder);
  const releaseTool = shared ? await takeToolLock(places.toolLock) : undefined;
  let releaseOwner: (() => void) | undefined;
  const release = () => {
    releaseOwner?.();
    releaseTool?.();
  };
  try {
    // A tool works beside the engine; where there is none, it owns the store meanwhile.
    releaseOwner = await (shared ? tryLock(places.lock) : takeOwnerLock(places.lock, places.toolLock));
    if (kind === "deno-kv") return await openDenoKv(folder, release);
    const { openBeside, openOwned } = await sqlite();
    if (releaseOwner === undefined) return await openBeside(places, warn, release);
    return await openOwned(places, warn, release);
  } catch (error) {
    release();
    throw error;
  }
}

/** Writes all records as text; see `Runtime.backupStore`. */
export async function* backupStore(
  options: StoreOptions,
  parts: AsyncIterable<BackupPart>,
): AsyncGenerator<Uint8Array> {
  // Opening checks the records first, where no engine has done so.
  const store = await openStore({ ...options, shared: true });
  try {
    const { listText, momentText } = await snapshots();
    if (options.kind === "sqlite") yield* momentText(placesIn(options.folder).database, parts);
    else yield* listText(store, parts);
  } finally {
    await store.close();
  }
}

/** Takes a backup in the place of all records; see `Runtime.restoreStore`. */
export async function restoreStore(
  options: StoreOptions,
  backup: () => AsyncIterable<Uint8Array>,
  overwrite: boolean,
  restorePart: (part: BackupPart) => Promise<void>,
): Promise<{ readonly records: number }> {
  if (options.kind !== "sqlite") {
    throw new SluiceError(
      "bad_configuration",
      `restore works on the store sqlite; this one is ${options.kind}`,
    );
  }
  const { restoreInto, verifyBackup } = await restoring();
  await verifyBackup(backup());
  await mkdir(options.folder, { recursive: true, mode: 0o700 });
  const places: Places = placesIn(options.folder);
  const { takeOwnerLock } = await locks();
  const release = await takeOwnerLock(places.lock, places.toolLock);
  try {
    return await restoreInto(places, backup(), overwrite, async (line: TextLine) => {
      if ("name" in line) await restorePart(line);
    });
  } finally {
    release();
  }
}

const locks = () => withSqlite(() => import("./kv-lock.ts"));
const sqlite = () => withSqlite(() => import("./kv-sqlite.ts"));
const snapshots = () => withSqlite(() => import("./kv-snapshot.ts"));
const restoring = () => withSqlite(() => import("./kv-restore.ts"));

/** Loads what needs `node:sqlite`, which old Node does not have: it can still run what needs no store. */
async function withSqlite<T>(load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    const { code } = error as { code?: unknown };
    if (code !== "ERR_UNKNOWN_BUILTIN_MODULE" && code !== "ERR_NO_SUCH_BUILTIN_MODULE") throw error;
    const message = `the records need node:sqlite, which this Node (${process.versions.node}) does not have: use Node 22.13 or newer, or Bun`;
    throw new SluiceError("bad_configuration", message, { cause: error });
  }
}
