import { toHex } from "../../base/bytes.ts";
import { messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { Runtime } from "../../runtime/contract.ts";

/** The folder for the live windows of this process. */
export interface LiveFolder {
  readonly path: string;
  /** Removes the folder. */
  close(): Promise<void>;
}

/** Another process that starts may have removed our lock as a stale one, once or twice. If every attempt fails, the
 * disk has no locks: some network drives report each file as locked. */
const MAX_TRIES = 5;
const NAME = /^([0-9a-f]{8})\.lock$/;

/** Creates a folder below `parent` for this process, and removes those of processes that have ended: a broadcast, a
 * relay and an engine may use the same data folder at the same time. Resolves with undefined if that fails. */
export async function openLiveFolder(
  parent: string,
  runtime: Pick<Runtime, "files" | "lock" | "randomBytes">,
  log: Log,
): Promise<LiveFolder | undefined> {
  try {
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const folder = await tryFolder(parent, runtime);
      if (folder) return folder;
    }
    log.warn("live streams are kept in memory only", { reason: `cannot lock files in ${parent}` });
  } catch (thrown) {
    log.warn("live streams are kept in memory only", { reason: messageOf(thrown) });
  }
  return undefined;
}

async function tryFolder(
  parent: string,
  runtime: Pick<Runtime, "files" | "lock" | "randomBytes">,
): Promise<LiveFolder | undefined> {
  const { files } = runtime;
  const name = toHex(runtime.randomBytes(4));
  const lockPath = `${parent}/${name}.lock`;
  await (await files.open(lockPath)).close(); // Creates the folder for the lock.
  const release = await runtime.lock(lockPath);
  if (!release) {
    await files.remove(lockPath);
    return undefined;
  }
  await removeStale(parent, name, runtime);
  const path = `${parent}/${name}`;
  return {
    path,
    async close() {
      await files.remove(path);
      release();
      await files.remove(lockPath);
    },
  };
}

async function removeStale(
  parent: string,
  own: string,
  { files, lock }: Pick<Runtime, "files" | "lock">,
): Promise<void> {
  const names = await files.list(parent);
  const locked = new Set([own]);
  for (const file of names) {
    const name = NAME.exec(file)?.[1];
    if (name === undefined || name === own) continue;
    const release = await lock(`${parent}/${file}`);
    if (!release) {
      locked.add(name);
      continue;
    }
    release();
    await files.remove(`${parent}/${file}`);
  }
  for (const name of names)
    if (!name.includes(".") && !locked.has(name)) await files.remove(`${parent}/${name}`);
}
