import { open, rename, rm } from "node:fs/promises";
import { messageOf, SluiceError } from "../base/errors.ts";

/**
 * Writes all of `bytes` to a file, or to standard output for `-`, with backpressure. A file is named `<name>.part` until it is
 * complete. Resolves to the number of bytes.
 */
export async function writeTo(
  bytes: ReadableStream<Uint8Array>,
  output: string,
  stdout: NodeJS.WriteStream,
  signal: AbortSignal,
): Promise<number> {
  return output === "-" ? writeToStdout(bytes, stdout, signal) : writeToFile(bytes, output, signal);
}

async function writeToFile(
  bytes: ReadableStream<Uint8Array>,
  path: string,
  signal: AbortSignal,
): Promise<number> {
  const part = `${path}.part`;
  const file = await open(part, "w").catch((error) => {
    throw new SluiceError("bad_configuration", `cannot write ${path}: ${messageOf(error)}`);
  });
  let written = 0;
  try {
    await each(bytes, signal, async (chunk) => {
      await file.writeFile(chunk).catch((error) => {
        throw new SluiceError("disk_full", `cannot write ${path}: ${messageOf(error)}`, { cause: error });
      });
      written += chunk.length;
      return true;
    });
    await file.sync();
  } catch (error) {
    await file.close();
    await rm(part, { force: true });
    throw error;
  }
  await file.close();
  await rename(part, path);
  return written;
}

async function writeToStdout(
  bytes: ReadableStream<Uint8Array>,
  stdout: NodeJS.WriteStream,
  signal: AbortSignal,
): Promise<number> {
  let written = 0;
  let failure: Error | undefined;
  stdout.on("error", (error: Error) => {
    failure = error;
  });
  await each(bytes, signal, async (chunk) => {
    await new Promise<void>((resolve) => stdout.write(chunk, () => resolve()));
    // The reader closed the pipe, as `head` does: a normal end.
    if ((failure as { code?: string } | undefined)?.code === "EPIPE") return false;
    if (failure !== undefined) throw failure;
    written += chunk.length;
    return true;
  });
  return written;
}

/** Calls `take` for each chunk in turn. Ends early if it returns false; rejects if the signal fires. */
async function each(
  bytes: ReadableStream<Uint8Array>,
  signal: AbortSignal,
  take: (chunk: Uint8Array) => Promise<boolean>,
): Promise<void> {
  const reader = bytes.getReader();
  const onAbort = () => void reader.cancel(signal.reason).catch(() => {});
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    for (;;) {
      const { done, value } = await reader.read();
      signal.throwIfAborted();
      if (done) return;
      if (!(await take(value))) return;
    }
  } finally {
    signal.removeEventListener("abort", onAbort);
    await reader.cancel("written").catch(() => {});
  }
}
