import { open, readFile, rm } from "node:fs/promises";
import { SluiceError } from "../base/errors.ts";

/** A lock may be found abandoned, and taken by another in the same moment: so often it is tried again. */
const TRIES = 3;

/**
 * Takes a lock file with our process id in it; the returned function gives it back. A lock whose process is gone is
 * taken over. Rejects with `bad_configuration` where another process holds it.
 */
export async function lockFile(path: string): Promise<() => Promise<void>> {
  for (let left = TRIES; ; left--) {
    try {
      const handle = await open(path, "wx", 0o600);
      await handle.writeFile(String(process.pid));
      await handle.close();
      return () => rm(path, { force: true });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
    const holder = Number(await readFile(path, "utf8").catch(() => ""));
    if (left === 0 || isAlive(holder)) {
      throw new SluiceError(
        "bad_configuration",
        `process ${holder} uses ${path}; stop it, or use another folder`,
      );
    }
    await rm(path, { force: true });
  }
}

function isAlive(pid: number): boolean {
  if (!Number.isSafeInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
