import { closeSync, openSync } from "node:fs";
import { rm } from "node:fs/promises";
import { DatabaseSync } from "node:sqlite";
import { SluiceError } from "../base/errors.ts";
import { troubleOf } from "./kv-sqlite-error.ts";

/**
 * Takes a lock that ends with the process, however that ends: the system's own lock on a file, as SQLite takes it. (A
 * process id in a file would outlive a crash, and in a container the next process may have the same one.) The returned
 * function gives it back. Throws `bad_configuration` where another holds it.
 */
export async function takeLock(path: string): Promise<() => void> {
  try {
    return lock(path);
  } catch (error) {
    // Nothing is ever written to it: what is no database has been damaged, and nobody can hold it.
    if (error instanceof SluiceError || troubleOf(error) !== "other") throw error;
    await rm(path, { force: true });
    return lock(path);
  }
}

function lock(path: string): () => void {
  closeSync(openSync(path, "a", 0o600));
  const database = new DatabaseSync(path);
  try {
    database.exec("BEGIN EXCLUSIVE");
  } catch (error) {
    database.close();
    if (troubleOf(error) !== "busy") throw error;
    throw new SluiceError(
      "bad_configuration",
      `another Sluice uses ${path}; stop it, or use another folder with --data-dir`,
    );
  }
  return () => database.close();
}
