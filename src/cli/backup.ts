import { rename } from "node:fs/promises";
import { join, resolve } from "node:path";
import { SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { BackupPart, Runtime } from "../runtime/contract.ts";
import type { Config } from "../settings/settings.ts";
import { type Arguments, usageError } from "./args.ts";
import type { Context } from "./context.ts";
import { keptFiles } from "./kept-files.ts";
import { printable } from "./log.ts";
import { MAX_BACKUP_FILE_BYTES, storeOptions } from "./store.ts";

/** Bytes of a file in one base64 record of the backup. */
const PART_BYTES = 192 * 1024;

/** `sluice backup`: writes the database, logos and broadcast keys to a file or standard output. Resolves to the exit code. */
export async function backup(context: Context, config: Config, log: Log, args: Arguments): Promise<number> {
  const target = args.operands[0];
  if (target === undefined) throw usageError("backup: expected a file to write, or - for standard output");
  if (config.store === "memory") throw usageError("backup: store is memory: there is no database to back up");
  const { runtime, stdout, stderr } = context;
  const text = backupText(runtime, config, log);
  if (target === "-") {
    // If the reader closes the pipe, the failed write ends the backup.
    for await (const chunk of text) await written(stdout, chunk);
    return 0;
  }
  const bytes = await writeBackupFile(runtime, resolve(target), text);
  if (args.flags.has("json")) stdout.write(`${JSON.stringify({ file: resolve(target), bytes })}\n`);
  else stderr.write(`${printable(target)}: ${bytes} bytes\n`);
  return 0;
}

/**
 * Returns the function that makes a backup for a client of a running engine. One backup at a time: while it is sent, the disk keeps the
 * state of the database from its start. Another one rejects with `too_many`.
 */
export function backupDownloads(runtime: Runtime, config: Config, log: Log): () => AsyncIterable<Uint8Array> {
  let isRunning = false;
  return async function* () {
    if (isRunning)
      throw new SluiceError("too_many", "another backup is being downloaded; try again when it has ended");
    isRunning = true;
    try {
      yield* backupText(runtime, config, log);
    } finally {
      isRunning = false;
    }
  };
}

/** Yields a backup of the database and its files, also while an engine runs. */
export function backupText(runtime: Runtime, config: Config, log: Log): AsyncIterable<Uint8Array> {
  return runtime.backupStore(storeOptions(config, log, true), partsOf(runtime, config.dataDir));
}

function written(stdout: NodeJS.WriteStream, chunk: Uint8Array): Promise<void> {
  return new Promise((done, fail) =>
    stdout.write(chunk, (error) => (error ? fail(notWritten(error)) : done())),
  );
}

function notWritten(error: Error): SluiceError {
  return new SluiceError("cancelled", `cannot write to standard output: ${error.message}`, { cause: error });
}

/** Writes a backup to a file: as `<name>.part` and renames it when it is complete and synced. Only the user can read it. Returns its bytes. */
export async function writeBackupFile(
  { files }: Runtime,
  path: string,
  text: AsyncIterable<Uint8Array>,
): Promise<number> {
  const part = `${path}.part`;
  await files.remove(part);
  const file = await files.open(part);
  let at = 0;
  try {
    for await (const chunk of text) {
      await file.write(at, chunk);
      at += chunk.length;
    }
    await file.sync();
  } catch (error) {
    await file.close();
    await files.remove(part);
    if (!(error instanceof SluiceError) || error.code !== "disk_full") throw error;
    throw new SluiceError("disk_full", `cannot write ${printable(path)}: the disk is full`, { cause: error });
  }
  await file.close();
  await rename(part, path);
  return at;
}

/** Yields the files of the backup, one part at a time. */
async function* partsOf({ files }: Runtime, dataDir: string): AsyncGenerator<BackupPart> {
  for await (const name of keptFiles(files, dataDir)) {
    const bytes = await files.read(join(dataDir, name), MAX_BACKUP_FILE_BYTES);
    // The file was removed since it was listed.
    if (bytes === undefined) continue;
    for (let at = 0; at === 0 || at < bytes.length; at += PART_BYTES) {
      const base64 = Buffer.from(bytes.subarray(at, at + PART_BYTES)).toString("base64");
      yield { name, base64, isLast: at + PART_BYTES >= bytes.length };
    }
  }
}
