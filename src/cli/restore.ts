import { createReadStream } from "node:fs";
import { messageOf, SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { BackupPart, Runtime } from "../runtime/contract.ts";
import type { Config } from "../settings.ts";
import type { Arguments } from "./args.ts";
import type { Context } from "./context.ts";
import { requireKeptFile, restoreFile } from "./kept-files.ts";
import { printable } from "./log.ts";
import { MAX_KEPT_BYTES, storePlace } from "./store-place.ts";
import { usageError } from "./usage.ts";

const READ_BYTES = 256 * 1024;

/** `sluice restore`: a backup in the place of all records. Resolves to the exit code. */
export async function restore(context: Context, config: Config, log: Log, args: Arguments): Promise<number> {
  const source = args.operands[0];
  if (source === undefined) throw usageError("restore: name the file to read");
  const { runtime, stderr } = context;
  const { records } = await runtime.restoreStore(
    storePlace(config, log, false),
    () => bytesOf(source),
    args.flags.has("force"),
    keeper(runtime, config.dataDir),
  );
  stderr.write(`${printable(source)}: ${records} records are back\n`);
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

/** Puts files together from their parts, and writes them where they were. */
function keeper({ files }: Runtime, dataDir: string): (part: BackupPart) => Promise<void> {
  let parts: Buffer[] = [];
  let bytes = 0;
  return async ({ name, base64, isLast }) => {
    requireKeptFile(name);
    const part = Buffer.from(base64, "base64");
    bytes += part.length;
    if (bytes > MAX_KEPT_BYTES)
      throw new SluiceError("too_large", `${printable(name)} has more than ${MAX_KEPT_BYTES} bytes`);
    parts.push(part);
    if (!isLast) return;
    await restoreFile(files, dataDir, name, new Uint8Array(Buffer.concat(parts)));
    parts = [];
    bytes = 0;
  };
}
