import { SluiceError } from "../../base/errors.ts";
import type { Files } from "../../runtime/contract.ts";
import { MAX_LIVE_FILE_BYTES } from "../../wire/live/limits.ts";
import { checkedBroadcastName } from "./broadcast-name.ts";

/** How long the stream of a replaced key sends its viewers to the new one. */
const RETIRED_MS = 30 * 24 * 3600_000;
/** A script that restarts a program with the flag must not replace the key each time. */
const MIN_INTERVAL_MS = 24 * 3600_000;
/** Marks the folder of a replaced key; its modification time is the time of the rotation. */
const MARKER = "retired";
/** The largest state file has less than 1 KiB. */
const MAX_STATE_BYTES = 64 * 1024;

/** Where the broadcasts of this machine are stored. */
export interface BroadcastFolders {
  readonly files: Files;
  /** The folder that contains a folder for each name. */
  readonly root: string;
  /** The time of day in UNIX ms. */
  unixMs(): number;
}

/**
 * Gives a stream a new key at its next start: moves its key, state and transport file to another name. The caller holds the lock of
 * the folder. Rejects with `bad_parameter` if there is no key, or if it was replaced within the last day.
 */
export async function retireKey(name: string, folders: BroadcastFolders): Promise<void> {
  const { files, root } = folders;
  const from = `${root}/${name}`;
  const read = (file: string, limit: number) => files.read(`${from}/${file}`, limit);
  const key = await read("key", MAX_STATE_BYTES);
  const transportFile = await read(`${name}.sluice`, MAX_LIVE_FILE_BYTES);
  if (!key || !transportFile)
    throw new SluiceError(
      "bad_parameter",
      `rotate: ${name} was never on air, so there is no key to replace; start it without rotate`,
    );
  const taken = await retiredFolders(name, folders);
  const latest = Math.max(0, ...taken.map(({ retiredMs }) => retiredMs));
  if (folders.unixMs() - latest < MIN_INTERVAL_MS)
    throw new SluiceError(
      "bad_parameter",
      `rotate: the key of ${name} was replaced within the last 24 hours; start it without rotate`,
    );
  const retired = checkedBroadcastName(
    `${name}.old-${1 + Math.max(0, ...taken.map(({ number }) => number))}`,
  );
  const to = `${root}/${retired}`;
  const state = await read("state", MAX_STATE_BYTES);
  const info = await read("info", MAX_LIVE_FILE_BYTES);
  const peers = await read("peers", MAX_STATE_BYTES);
  // The copy is complete before anything is removed.
  if (info) await files.replace(`${to}/info`, info);
  if (state) await files.replace(`${to}/state`, state);
  if (peers) await files.replace(`${to}/peers`, peers);
  await files.replace(`${to}/${retired}.sluice`, transportFile);
  await files.replace(`${to}/key`, key);
  await files.replace(`${to}/${MARKER}`, new TextEncoder().encode(`${folders.unixMs()}\n`));
  // The key first: a start after a crash in between must not use the old key for a new stream. It is refused.
  for (const file of ["key", `${name}.sluice`, "info", "peers", "state"])
    await files.remove(`${from}/${file}`);
}

/** Returns the names of the streams whose viewers are still sent to `name`. */
export async function retiredNames(name: string, folders: BroadcastFolders): Promise<string[]> {
  const all = await retiredFolders(name, folders);
  return all.filter(({ retiredMs }) => folders.unixMs() - retiredMs < RETIRED_MS).map(({ folder }) => folder);
}

interface RetiredFolder {
  readonly folder: string;
  readonly number: number;
  /** When the key was replaced, in UNIX ms. */
  readonly retiredMs: number;
}

async function retiredFolders(name: string, { files, root }: BroadcastFolders): Promise<RetiredFolder[]> {
  const found: RetiredFolder[] = [];
  for (const folder of await files.list(root)) {
    const number = folder.startsWith(`${name}.old-`) ? Number(folder.slice(name.length + 5)) : Number.NaN;
    if (!Number.isSafeInteger(number) || number < 1) continue;
    const marker = await files.read(`${root}/${folder}/${MARKER}`, 64).catch(() => undefined); // Not ours.
    if (marker) found.push({ folder, number, retiredMs: Number(new TextDecoder().decode(marker)) || 0 });
  }
  return found;
}
