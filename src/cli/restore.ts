import { messageOf, SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { BackupPart, Runtime } from "../runtime/contract.ts";
import type { Config } from "../settings/settings.ts";
import { type Arguments, usageError } from "./args.ts";
import type { Context } from "./context.ts";
import { requireKeptFile, restoreFile } from "./kept-files.ts";
import { printable } from "./log.ts";
import { MAX_BACKUP_FILE_BYTES, storeOptions } from "./store.ts";

/** `sluice restore`: replaces the database with a backup. Resolves to the exit code. */
export async function restore(context: Context, config: Config, log: Log, args: Arguments): Promise<number> {
  const source = args.operands[0];
  if (source === undefined) throw usageError("restore: expected the file to read");
  const { runtime, stdout, stderr } = context;
  const { records } = await restoreFrom(runtime, config, log, source, args.flags.has("force"));
  if (args.flags.has("json")) stdout.write(`${JSON.stringify({ file: source, records })}\n`);
  else stderr.write(`${printable(source)}: restored ${records} records\n`);
  return 0;
}

/** Replaces the database and its files with a backup file; see `Runtime.restoreStore`. No engine may be running. */
export function restoreFrom(
  runtime: Runtime,
  config: Config,
  log: Log,
  source: string,
  overwrite: boolean,
): Promise<{ readonly records: number }> {
  const { files } = runtime;
  return runtime.restoreStore(
    storeOptions(config, log, false),
    () => backupBytes(runtime, source),
    overwrite,
    wholeFiles((name, bytes) => restoreFile(files, config.dataDir, name, bytes)),
  );
}

/** Yields the bytes of a backup file. Throws `bad_configuration` if it cannot be read. */
export async function* backupBytes({ files }: Runtime, path: string): AsyncGenerator<Uint8Array> {
  try {
    yield* files.parts(path);
  } catch (error) {
    throw new SluiceError("bad_configuration", `cannot read ${printable(path)}: ${messageOf(error)}`);
  }
}

/** Joins the parts of each file, and calls `work` with the whole file. Throws if a backup may not contain it. */
export function wholeFiles(
  work: (name: string, bytes: Uint8Array) => Promise<void>,
): (part: BackupPart) => Promise<void> {
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
    await work(name, new Uint8Array(Buffer.concat(parts)));
    parts = [];
    bytes = 0;
  };
}
