import { closeSync, openSync } from "node:fs";
import { rm } from "node:fs/promises";
import { DatabaseSync } from "node:sqlite";
import { SluiceError } from "../base/errors.ts";
import { asStoreError, troubleOf } from "./kv-sqlite-error.ts";

/** A backup of a large store takes seconds; whoever holds on for longer has stopped. */
const LONGEST_TOOL_MS = 30_000;
const RETRY_MS = 50;

/**
 * Takes a lock that ends with the process, however that ends: the system's own lock on a file, as SQLite takes it. (A
 * process id in a file would outlive a crash, and in a container the next process may have the same one.) The returned
 * function gives it back. Throws `bad_configuration` where another holds it.
 */
async function takeLock(path: string): Promise<() => void> {
  const release = await tryLock(path);
  if (release !== undefined) return release;
  throw new SluiceError(
    "bad_configuration",
    `another Sluice uses ${path}; stop it, or use another folder with --data-dir`,
  );
}

/** The same, and undefined where another holds it. */
export async function tryLock(path: string): Promise<(() => void) | undefined> {
  try {
    return lock(path);
  } catch (error) {
    // Nothing is ever written to it: what is no database has been damaged, and nobody can hold it.
    if (error instanceof SluiceError || troubleOf(error) !== "other") throw error;
    await rm(path, { force: true });
    return lock(path);
  }
}

function lock(path: string): (() => void) | undefined {
  closeSync(openSync(path, "a", 0o600));
  const database = new DatabaseSync(path);
  try {
    // A journal would need room on the disk, which may be full, for nothing.
    database.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
  } catch (error) {
    database.close();
    if (troubleOf(error) === "busy") return undefined;
    throw asStoreError(error);
  }
  return () => database.close();
}

/** Takes the lock of an owner: refused at once by another owner, but waits for a tool to be done with it. */
export async function takeOwnerLock(path: string, toolPath: string): Promise<() => void> {
  for (let leftMs = LONGEST_TOOL_MS; leftMs > 0; leftMs -= RETRY_MS) {
    const release = await tryLock(path);
    if (release !== undefined) return release;
    const noTool = await tryLock(toolPath);
    noTool?.();
    if (noTool !== undefined) break;
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
  return takeLock(path);
}

/** Takes the lock of a tool, one after another. */
export async function takeToolLock(toolPath: string): Promise<() => void> {
  for (let leftMs = LONGEST_TOOL_MS; leftMs > 0; leftMs -= RETRY_MS) {
    const release = await tryLock(toolPath);
    if (release !== undefined) return release;
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
  return takeLock(toolPath);
}
