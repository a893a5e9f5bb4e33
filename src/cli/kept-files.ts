import { join } from "node:path";
import { equalBytes } from "../base/bytes.ts";
import { SluiceError } from "../base/errors.ts";
import { checkedBroadcastName } from "../live/broadcast/broadcast-name.ts";
import type { Files } from "../runtime/contract.ts";
import { printable } from "./log.ts";

/** Folders in the data folder that a backup contains: uploaded images and transport files. */
const FOLDERS = ["library/images", "transport-files"] as const;
/** Transport files that the user did not upload are a cache, like `cache`. */
const CACHED_FILE = /^transport-files\/[^.]*\.(?:torrent|sluice)$/;
/** Holds a folder for each broadcast; a backup contains only the files that cannot be recreated. */
const BROADCASTS = "broadcasts";

/** Yields the files of a backup, as paths relative to the data folder. */
export async function* keptFiles(files: Pick<Files, "list">, dataDir: string): AsyncGenerator<string> {
  for (const folder of FOLDERS) {
    for (const name of await files.list(join(dataDir, folder))) {
      // Files with this suffix are being written.
      const path = `${folder}/${name}`;
      if (!name.endsWith(".new") && !CACHED_FILE.test(path)) yield path;
    }
  }
  for (const name of await files.list(join(dataDir, BROADCASTS))) {
    if (!isBroadcastName(name)) continue;
    for (const file of broadcastFiles(name)) yield `${BROADCASTS}/${name}/${file}`;
  }
}

/** Throws `bad_parameter` if a backup contains a path that no backup may write: backups are untrusted input. */
export function requireKeptFile(name: string): void {
  const [folder, broadcast = "", file = "", ...more] = name.split("/");
  const at = name.lastIndexOf("/");
  const isUsual =
    FOLDERS.some((each) => each === name.slice(0, at)) &&
    /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(name.slice(at + 1));
  const isBroadcast =
    folder === BROADCASTS &&
    more.length === 0 &&
    isBroadcastName(broadcast) &&
    broadcastFiles(broadcast).includes(file);
  if (isUsual || isBroadcast) return;
  throw new SluiceError("bad_parameter", `the backup contains an unexpected file: ${printable(name)}`);
}

/** Rejects with `bad_configuration` if a file of a backup would overwrite a different broadcast key. */
export async function requireSameKey(
  files: Pick<Files, "read">,
  dataDir: string,
  name: string,
  bytes: Uint8Array,
): Promise<void> {
  const path = join(dataDir, name);
  if (name.startsWith(`${BROADCASTS}/`) && name.endsWith("/key")) {
    const there = await files.read(path, 4096);
    if (there !== undefined && !equalBytes(there, bytes))
      throw new SluiceError(
        "bad_configuration",
        `${printable(path)} differs from the key in the backup and would be lost; move its folder away first`,
      );
  }
}

/** Writes a file of a backup to its place. Rejects if it would overwrite a different broadcast key. */
export async function restoreFile(
  files: Pick<Files, "read" | "replace">,
  dataDir: string,
  name: string,
  bytes: Uint8Array,
): Promise<void> {
  await requireSameKey(files, dataDir, name, bytes);
  await files.replace(join(dataDir, name), bytes);
}

function broadcastFiles(name: string): readonly string[] {
  return ["key", "info", `${name}.sluice`, "retired"];
}

function isBroadcastName(name: string): boolean {
  try {
    return checkedBroadcastName(name) === name;
  } catch (thrown) {
    if (thrown instanceof SluiceError) return false;
    throw thrown;
  }
}
