import { open, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { files, syncFolder } from "./files.ts";

/** So many damaged (or replaced) stores are kept beside, for somebody to look at; the oldest goes first. */
const KEPT_COPIES = 3;
const COPY = /^records\.(\d{1,9})\.old(-wal)?$/;

/** Where everything of a store lies. */
export interface Places {
  readonly folder: string;
  readonly database: string;
  readonly log: string;
  /** The snapshot: text of `kv-text.ts`. */
  readonly snapshot: string;
  /** How many commits were acknowledged. */
  readonly tip: string;
  readonly lock: string;
  /** Held by a tool, besides the other where no engine runs: an engine that starts waits for it. */
  readonly toolLock: string;
  /** A database that is being made. */
  readonly building: string;
  /** A database that is ready to take the place of the one that is there. */
  readonly ready: string;
}

/** The files of the store in a folder. */
export function placesIn(folder: string): Places {
  const database = join(folder, "records.db");
  return {
    folder,
    database,
    log: `${database}-wal`,
    snapshot: join(folder, "records.snapshot"),
    tip: join(folder, "records.tip"),
    lock: join(folder, "records.lock"),
    toolLock: join(folder, "records.tool-lock"),
    building: join(folder, "records.building"),
    ready: join(folder, "records.ready"),
  };
}

/**
 * Lets the database that is ready take its place; what was there is kept beside. Every step can be the last one before
 * a crash: as long as the ready one is there, this begins again, and the log of the old one is gone before the new one
 * stands where a log could be taken for its own. False where there was none.
 */
export async function finishSwap(places: Places): Promise<boolean> {
  await removeDatabase(places.building);
  if ((await files.stat(places.ready)) === undefined) return false;
  const copy = await nextCopy(places.folder);
  await moveAside(places.database, copy);
  await moveAside(places.log, `${copy}-wal`);
  await files.remove(`${places.database}-shm`);
  await files.remove(places.tip);
  await syncFolder(places.folder);
  await rename(places.ready, places.database);
  await syncFolder(places.folder);
  await dropOldCopies(places.folder);
  return true;
}

/** Makes what was built the ready one: durable before it has the name that counts. */
export async function markReady(places: Places): Promise<void> {
  const handle = await open(places.building, "r+");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(places.building, places.ready);
  await syncFolder(places.folder);
}

/** Removes a database that is not used, with what belongs to it. */
export async function removeDatabase(path: string): Promise<void> {
  for (const end of ["", "-wal", "-shm", "-journal"]) await rm(`${path}${end}`, { force: true });
}

/** Where the next damaged store goes. */
async function nextCopy(folder: string): Promise<string> {
  const last = Math.max(0, ...(await copiesIn(folder)));
  return join(folder, `records.${last + 1}.old`);
}

async function copiesIn(folder: string): Promise<number[]> {
  const numbers = (await readdir(folder)).flatMap((name) => COPY.exec(name)?.[1] ?? []);
  return [...new Set(numbers.map(Number))].sort((a, b) => a - b);
}

async function dropOldCopies(folder: string): Promise<void> {
  for (const number of (await copiesIn(folder)).slice(0, -KEPT_COPIES)) {
    await removeDatabase(join(folder, `records.${number}.old`));
  }
}

async function moveAside(path: string, to: string): Promise<void> {
  if ((await files.stat(path)) !== undefined) await rename(path, to);
}
