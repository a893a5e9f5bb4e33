import { open, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { files, syncFolder } from "./files.ts";

/** Number of damaged or replaced databases kept for inspection; the oldest are deleted. */
const MAX_COPIES = 3;
const COPY = /^records\.(\d{1,9})\.old(-wal)?$/;

/** The paths of a store's files. */
export interface StorePaths {
  readonly folder: string;
  readonly database: string;
  readonly writeAheadLog: string;
  /** The snapshot, in the format of `kv-text.ts`. */
  readonly snapshot: string;
  /** The number of acknowledged commits. */
  readonly tip: string;
  readonly lock: string;
  /** Held by a tool, together with `lock` if no engine runs. An engine that starts waits for it. */
  readonly toolLock: string;
  /** A database under construction. */
  readonly building: string;
  /** A finished database that replaces the current one. */
  readonly ready: string;
}

/** Returns the paths of the store in `folder`. */
export function storePaths(folder: string): StorePaths {
  const database = join(folder, "records.db");
  return {
    folder,
    database,
    writeAheadLog: `${database}-wal`,
    snapshot: join(folder, "records.snapshot"),
    tip: join(folder, "records.tip"),
    lock: join(folder, "records.lock"),
    toolLock: join(folder, "records.tool-lock"),
    building: join(folder, "records.building"),
    ready: join(folder, "records.ready"),
  };
}

/**
 * Replaces the current database by the finished one, if there is one, and keeps the old one as a copy. Safe against a
 * crash at every step: while the finished database exists this starts again, and the old write-ahead log is moved away
 * before the new database gets the name to which the log would apply. Returns false if there was nothing to do.
 */
export async function finishSwap(paths: StorePaths): Promise<boolean> {
  await removeDatabase(paths.building);
  if ((await files.stat(paths.ready)) === undefined) return false;
  const copy = await nextCopy(paths.folder);
  await moveIfPresent(paths.database, copy);
  await moveIfPresent(paths.writeAheadLog, `${copy}-wal`);
  await files.remove(`${paths.database}-shm`);
  await files.remove(paths.tip);
  await syncFolder(paths.folder);
  await rename(paths.ready, paths.database);
  await syncFolder(paths.folder);
  await removeOldCopies(paths.folder);
  return true;
}

/** Syncs the database under construction, then renames it to the finished one. */
export async function markReady(paths: StorePaths): Promise<void> {
  const handle = await open(paths.building, "r+");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(paths.building, paths.ready);
  await syncFolder(paths.folder);
}

/** Removes a closed database with its log and journal files. */
export async function removeDatabase(path: string): Promise<void> {
  for (const suffix of ["", "-wal", "-shm", "-journal"]) await rm(`${path}${suffix}`, { force: true });
}

async function nextCopy(folder: string): Promise<string> {
  const last = Math.max(0, ...(await copiesIn(folder)));
  return join(folder, `records.${last + 1}.old`);
}

async function copiesIn(folder: string): Promise<number[]> {
  const numbers = (await readdir(folder)).flatMap((name) => COPY.exec(name)?.[1] ?? []);
  return [...new Set(numbers.map(Number))].sort((a, b) => a - b);
}

async function removeOldCopies(folder: string): Promise<void> {
  for (const number of (await copiesIn(folder)).slice(0, -MAX_COPIES)) {
    await removeDatabase(join(folder, `records.${number}.old`));
  }
}

async function moveIfPresent(path: string, to: string): Promise<void> {
  if ((await files.stat(path)) !== undefined) await rename(path, to);
}
