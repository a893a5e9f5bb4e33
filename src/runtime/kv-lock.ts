import { closeSync, openSync } from "node:fs";
import { rm } from "node:fs/promises";
import { DatabaseSync } from "node:sqlite";
import { SluiceError } from "../base/errors.ts";
import { asStoreError, sqliteErrorKind } from "./kv-sqlite-error.ts";

/** A backup of a large store takes seconds; a process that holds the lock for longer hangs. */
const MAX_TOOL_MS = 30_000;
const RETRY_MS = 50;

async function takeLock(path: string): Promise<() => void> {
  const release = await tryLock(path);
  if (release !== undefined) return release;
  throw new SluiceError(
    "bad_configuration",
    `another Sluice uses ${path}; stop it, or choose another folder with --data-dir`,
  );
}

/**
 * Takes the system's lock on a file, through SQLite; the operating system releases it when the process ends. (A process
 * id in a file would survive a crash, and a restarted container may reuse the id.) Returns a function that releases the
 * lock, or undefined if another process holds it.
 */
export async function tryLock(path: string): Promise<(() => void) | undefined> {
  try {
    return lock(path);
  } catch (error) {
    // The lock file stays empty. If it is not a database it was damaged, and no process can hold its lock.
    if (error instanceof SluiceError || sqliteErrorKind(error) !== "other") throw error;
    await rm(path, { force: true });
    return lock(path);
  }
}

function lock(path: string): (() => void) | undefined {
  closeSync(openSync(path, "a", 0o600));
  const database = new DatabaseSync(path);
  try {
    // No journal file: the disk may be full, and nothing is written.
    database.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
  } catch (error) {
    database.close();
    if (sqliteErrorKind(error) === "busy") return undefined;
    throw asStoreError(error);
  }
  return () => database.close();
}

/** Takes the owner's lock; returns its release. Waits for a tool that holds it; throws `bad_configuration` if another
 * engine does. */
export async function takeOwnerLock(path: string, toolPath: string): Promise<() => void> {
  for (let leftMs = MAX_TOOL_MS; leftMs > 0; leftMs -= RETRY_MS) {
    const release = await tryLock(path);
    if (release !== undefined) return release;
    const releaseTool = await tryLock(toolPath);
    releaseTool?.();
    if (releaseTool !== undefined) break;
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
  return takeLock(path);
}

/** Takes the lock of a tool; waits for another tool that holds it. Returns its release. */
export async function takeToolLock(toolPath: string): Promise<() => void> {
  for (let leftMs = MAX_TOOL_MS; leftMs > 0; leftMs -= RETRY_MS) {
    const release = await tryLock(toolPath);
    if (release !== undefined) return release;
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
  return takeLock(toolPath);
}
