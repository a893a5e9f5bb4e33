import { type FileHandle, open } from "node:fs/promises";
import { messageOf, SluiceError } from "../base/errors.ts";
import type { LiveFile } from "../engine/live/source-file.ts";

/** Opens a file that the user wants broadcast. Rejects with `bad_parameter` where it cannot be read. */
export async function openLiveFile(path: string): Promise<LiveFile> {
  const cannot = (why: string) => new SluiceError("bad_parameter", `source: cannot read ${path}: ${why}`);
  const file = await open(path, "r").catch((error) => {
    throw cannot((error as { code?: string }).code === "ENOENT" ? "there is no such file" : messageOf(error));
  });
  try {
    const facts = await file.stat();
    // A named pipe or a device has no size to go by.
    if (!facts.isFile()) throw cannot("it is no file; pipe it in: cat … | sluice broadcast -");
    return liveFile(file, facts.size, cannot);
  } catch (error) {
    await file.close();
    throw error;
  }
}

function liveFile(file: FileHandle, size: number, cannot: (why: string) => SluiceError): LiveFile {
  return {
    size,
    async read({ start, end }) {
      const bytes = new Uint8Array(end - start);
      for (let at = 0; at < bytes.length; ) {
        const { bytesRead } = await file.read(bytes, at, bytes.length - at, start + at);
        if (bytesRead === 0) throw cannot(`it has become shorter than ${size} bytes`);
        at += bytesRead;
      }
      return bytes;
    },
    close: () => file.close(),
  };
}

/** What is piped in, at the pace of whoever reads it. To be asked for once. */
export function pipedIn(stdin: NodeJS.ReadStream): ReadableStream<Uint8Array> {
  const chunks = stdin[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await chunks.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      cancel() {
        // The iterator's own end would wait for the read that is open, maybe for ever.
        stdin.destroy();
      },
    },
    { highWaterMark: 0 },
  );
}
