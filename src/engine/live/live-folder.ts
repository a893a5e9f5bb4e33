import { toHex } from "../../base/bytes.ts";
import { messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { Runtime } from "../../runtime/contract.ts";

/** The folder in which this run keeps what is kept of live streams. */
export interface LiveFolder {
  readonly path: string;
  /** Gives it up, with all that is in it. */
  close(): Promise<void>;
}

/** Another process that begins may have taken our lock for one that was left, once or twice. Where it happens each time, the
 * disk knows no locks: some network drives say so of every file. */
const TRIES = 5;
const NAME = /^([0-9a-f]{8})\.lock$/;

/**
 * Makes a folder below `parent` that is this process's own, and removes those of processes that have ended: a broadcast,
 * a relay and an engine may run beside each other with the same data folder. Undefined where the disk does not let us.
 */
export async function openLiveFolder(
  parent: string,
  runtime: Pick<Runtime, "files" | "lock" | "randomBytes">,
  log: Log,
): Promise<LiveFolder | undefined> {
  try {
    for (let tries = 0; tries < TRIES; tries++) {
      const folder = await tryFolder(parent, runtime);
      if (folder) return folder;
    }
    log.warn("live streams are kept in memory only", { reason: `no file in ${parent} can be locked` });
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
  await (await files.open(lockPath)).close(); // Makes the folder, which the lock needs.
  const release = await runtime.lock(lockPath);
  if (!release) {
    await files.remove(lockPath);
    return undefined;
  }
  await removeLeft(parent, name, runtime);
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

async function removeLeft(
  parent: string,
  ours: string,
  { files, lock }: Pick<Runtime, "files" | "lock">,
): Promise<void> {
  const names = await files.list(parent);
  const locked = new Set([ours]);
  for (const file of names) {
    const name = NAME.exec(file)?.[1];
    if (name === undefined || name === ours) continue;
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
