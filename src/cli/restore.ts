import { createReadStream } from "node:fs";
import { messageOf, SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { BackupPart, Runtime } from "../runtime/contract.ts";
import type { Config } from "../settings/settings.ts";
import { type Arguments, usageError } from "./args.ts";
import type { Context } from "./context.ts";
import { requireKeptFile, restoreFile } from "./kept-files.ts";
import { printable } from "./log.ts";
import { MAX_BACKUP_FILE_BYTES, storeOptions } from "./store.ts";

const READ_BYTES = 256 * 1024;

/** `sluice restore`: replaces the database with a backup. Resolves to the exit code. */
export async function restore(context: Context, config: Config, log: Log, args: Arguments): Promise<number> {
  const source = args.operands[0];
  if (source === undefined) throw usageError("restore: expected the file to read");
  const { runtime, stdout, stderr } = context;
  const { records } = await runtime.restoreStore(
    storeOptions(config, log, false),
    () => bytesOf(source),
    args.flags.has("force"),
    keeper(runtime, config.dataDir),
  );
  if (args.flags.has("json")) stdout.write(`${JSON.stringify({ file: source, records })}\n`);
  else stderr.write(`${printable(source)}: restored ${records} records\n`);
  return 0;
}

async function* bytesOf(path: string): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of createReadStream(path, { highWaterMark: READ_BYTES }))
      yield chunk as Uint8Array;
  } catch (error) {
    throw new SluiceError("bad_configuration", `cannot read ${printable(path)}: ${messageOf(error)}`);
  }
}

/** Joins the parts of each file and writes the file to its place. */
function keeper({ files }: Runtime, dataDir: string): (part: BackupPart) => Promise<void> {
  let parts: Buffer[] = [];
  let bytes = 0;
  return async ({ name, base64, isLast }) => {
    requireKeptFile(name);
    const part = Buffer.from(base64, "base64");
    bytes += part.length;
    if (bytes > MAX_BACKUP_FILE_BYTES)
      throw new SluiceError(
        "too_large",
        `the backup is invalid: ${printable(name)} has more than ${MAX_BACKUP_FILE_BYTES} bytes`,
      );
    parts.push(part);
    if (!isLast) return;
    await restoreFile(files, dataDir, name, new Uint8Array(Buffer.concat(parts)));
    parts = [];
    bytes = 0;
  };
}
