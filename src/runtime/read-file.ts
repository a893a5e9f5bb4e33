import { open } from "node:fs/promises";
import type { RandomAccess } from "../base/byte-source.ts";
import { messageOf, SluiceError } from "../base/errors.ts";

/** A file of the user's that is only read. */
export interface ReadableFile extends RandomAccess {
  close(): Promise<void>;
}

/** Opens a file of the user's. Rejects with `bad_parameter` where it cannot be read, or is none. */
export async function openToRead(path: string): Promise<ReadableFile> {
  const handle = await open(path, "r").catch((error: unknown) => {
    const isAbsent = (error as { code?: string }).code === "ENOENT";
    const why = isAbsent ? "there is no such file" : messageOf(error);
    throw new SluiceError("bad_parameter", `${path} cannot be read: ${why}`, { cause: error });
  });
  const facts = await handle.stat();
  if (!facts.isFile()) {
    await handle.close();
    throw new SluiceError("bad_parameter", `${path} is no file; pipe it in, and name - instead`);
  }
  return {
    size: facts.size,
    async read({ start, end }) {
      const bytes = new Uint8Array(end - start);
      for (let got = 0; got < bytes.length; ) {
        const { bytesRead } = await handle.read(bytes, got, bytes.length - got, start + got);
        if (bytesRead === 0) throw new SluiceError("broken_media", `${path} has become shorter`);
        got += bytesRead;
      }
      return bytes;
    },
    close: () => handle.close(),
  };
}
