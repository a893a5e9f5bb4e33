import { rename } from "node:fs/promises";
import { join, resolve } from "node:path";
import { SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { BackupPart, Runtime } from "../runtime/contract.ts";
import type { Config } from "../settings.ts";
import type { Arguments } from "./args.ts";
import type { Context } from "./context.ts";
import { keptFiles } from "./kept-files.ts";
import { printable } from "./log.ts";
import { MAX_KEPT_BYTES, storePlace } from "./store-place.ts";
import { usageError } from "./usage.ts";

/** A part of a file, before it is written as base64. */
const PART_BYTES = 192 * 1024;

/** `sluice backup`: all records, logos and keys of broadcasts as one text, to a file or to standard output. Resolves to the exit code. */
export async function backup(context: Context, config: Config, log: Log, args: Arguments): Promise<number> {
  const target = args.operands[0];
  if (target === undefined) throw usageError("backup: name the file to write, or - for standard output");
  if (config.store === "memory")
    throw usageError("backup: the store memory keeps nothing that could be backed up");
  const { runtime, stdout, stderr } = context;
  const text = runtime.backupStore(storePlace(config, log, true), partsOf(runtime, config.dataDir));
  if (target === "-") {
    // A reader that goes away has no backup; the error of the write ends it.
    for await (const chunk of text) await written(stdout, chunk);
    return 0;
  }
  const bytes = await writeFile(runtime, resolve(target), text);
  stderr.write(`${printable(target)}: ${bytes} bytes\n`);
  return 0;
}

function written(stdout: NodeJS.WriteStream, chunk: Uint8Array): Promise<void> {
  return new Promise((done, fail) =>
    stdout.write(chunk, (error) => (error ? fail(notWritten(error)) : done())),
  );
}

function notWritten(error: Error): SluiceError {
  return new SluiceError("cancelled", `standard output took no more: ${error.message}`, { cause: error });
}

/** The file has its name only when it is whole and safe; until then it is `<name>.part`. Only the user can read it. */
async function writeFile({ files }: Runtime, path: string, text: AsyncIterable<Uint8Array>): Promise<number> {
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
    throw error;
  }
  await file.close();
  await rename(part, path);
  return at;
}

/** The files that belong to the records, a part at a time. */
async function* partsOf({ files }: Runtime, dataDir: string): AsyncGenerator<BackupPart> {
  for await (const name of keptFiles(files, dataDir)) {
    const bytes = await files.read(join(dataDir, name), MAX_KEPT_BYTES);
    // One that was removed meanwhile is one less.
    if (bytes === undefined) continue;
    for (let at = 0; at === 0 || at < bytes.length; at += PART_BYTES) {
      const base64 = Buffer.from(bytes.subarray(at, at + PART_BYTES)).toString("base64");
      yield { name, base64, isLast: at + PART_BYTES >= bytes.length };
    }
  }
}
