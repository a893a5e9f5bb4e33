import { join } from "node:path";
import { equalBytes } from "../base/bytes.ts";
import { SluiceError } from "../base/errors.ts";
import { checkedBroadcastName } from "../engine/live/broadcast-name.ts";
import type { Files } from "../runtime/contract.ts";
import { printable } from "./log.ts";

/** The folders below the data folder whose files belong to the records: what users uploaded, and content ids of theirs. */
const FOLDERS = ["library/images", "transport-files"] as const;
/** What was broadcast: a folder for each, and what of it must not be lost. The rest is made anew. */
const BROADCASTS = "broadcasts";

/** The files of a data folder that belong to the records, by their names below it. */
export async function* keptFiles(files: Pick<Files, "list">, dataDir: string): AsyncGenerator<string> {
  for (const folder of FOLDERS) {
    for (const name of await files.list(join(dataDir, folder))) {
      // One that is being written has another name.
      if (!name.endsWith(".new")) yield `${folder}/${name}`;
    }
  }
  for (const name of await files.list(join(dataDir, BROADCASTS))) {
    if (!isBroadcastName(name)) continue;
    for (const file of broadcastFiles(name)) yield `${BROADCASTS}/${name}/${file}`;
  }
}

/** Throws `bad_parameter` where a backup names a file that is none of those: it may come from anywhere, and shall not write
 * wherever it likes. */
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
  throw new SluiceError("bad_parameter", `the backup names a file that is none of ours: ${printable(name)}`);
}

/** Writes a file of a backup where it was. The key of a broadcast never takes the place of another: rejects then. */
export async function restoreFile(
  files: Pick<Files, "read" | "replace">,
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
        `${printable(path)} is another key than that of the backup, and would be lost; move its folder away first`,
      );
  }
  await files.replace(path, bytes);
}

function broadcastFiles(name: string): readonly string[] {
  return ["key", "info", `${name}.sluice`];
}

function isBroadcastName(name: string): boolean {
  try {
    return checkedBroadcastName(name) === name;
  } catch (thrown) {
    if (thrown instanceof SluiceError) return false;
    throw thrown;
  }
}
