import { constants } from "node:fs";
import { type FileHandle, mkdir, open, readdir, rename, rm, stat, statfs } from "node:fs/promises";
import { dirname } from "node:path";
import type { RandomAccess } from "../base/byte-source.ts";
import { messageOf, SluiceError } from "../base/errors.ts";
import type { Files, OpenFile } from "./contract.ts";
import { DirectDisk, writeFully } from "./direct-writes.ts";

/** Folders and files are readable by the user only. */
const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;
const PART_BYTES = 64 * 1024;
/** The cache, whose writes bypass the page cache, is on one disk. */
const directDisk = new DirectDisk();

/** The machine's file system. A full disk or quota rejects with `disk_full`, other failures with the system's error. */
export const files: Files = {
  async open(path, { bypassesPageCache = false } = {}) {
    const handle = await openCreating(path, constants.O_RDWR | constants.O_CREAT);
    return openFile(handle, bypassesPageCache ? directDisk.file(path) : undefined);
  },

  async read(path, limitBytes) {
    const handle = await unlessMissing(open(path, "r"));
    if (handle === undefined) return undefined;
    try {
      const { size } = await handle.stat();
      if (size > limitBytes) throw new Error(`${path} has ${size} bytes, expected at most ${limitBytes}`);
      const bytes = new Uint8Array(size);
      await readExactly(handle, 0, bytes);
      return bytes;
    } finally {
      await handle.close();
    }
  },

  async *parts(path) {
    const handle = await open(path, "r");
    try {
      for (;;) {
        const bytes = new Uint8Array(PART_BYTES);
        const { bytesRead } = await handle.read(bytes, 0, PART_BYTES);
        if (bytesRead === 0) return;
        yield bytes.subarray(0, bytesRead);
      }
    } finally {
      await handle.close();
    }
  },

  async replace(path, bytes) {
    const temporary = `${path}.new`;
    const handle = await openCreating(temporary, constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC);
    try {
      await asTyped(writeFully(handle, 0, [bytes]));
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, path);
    await syncFolder(dirname(path));
  },

  async remove(path) {
    await rm(path, { force: true, recursive: true });
  },

  async list(path) {
    return (await unlessMissing(readdir(path))) ?? [];
  },

  async stat(path) {
    const facts = await unlessMissing(stat(path));
    if (facts === undefined) return undefined;
    const permissions = process.platform === "win32" ? {} : { permissions: facts.mode & 0o777 };
    return { size: facts.size, modifiedMs: facts.mtimeMs, ...permissions };
  },

  async freeBytes(path) {
    for (let at = path; ; at = dirname(at)) {
      try {
        const { bavail, bsize } = await statfs(at);
        return bavail * bsize;
      } catch (error) {
        if (!isMissing(error) || at === dirname(at)) return undefined;
      }
    }
  },
};

function openFile(handle: FileHandle, direct: ReturnType<DirectDisk["file"]> | undefined): OpenFile {
  return {
    read: (at, into) => readExactly(handle, at, into),
    async write(at, ...parts) {
      if (direct && (await asTyped(direct.write(at, parts)))) return;
      await asTyped(writeFully(handle, at, parts));
    },
    truncate: (bytes) => handle.truncate(bytes),
    sync: () => asTyped(handle.sync()),
    async close() {
      await direct?.close();
      await handle.close();
    },
  };
}

async function openCreating(path: string, flags: number): Promise<FileHandle> {
  const first = await unlessMissing(asTyped(open(path, flags, FILE_MODE)));
  if (first !== undefined) return first;
  await asTyped(mkdir(dirname(path), { recursive: true, mode: FOLDER_MODE }));
  return asTyped(open(path, flags, FILE_MODE));
}

async function readExactly(handle: FileHandle, at: number, into: Uint8Array): Promise<void> {
  for (let got = 0; got < into.length; ) {
    const { bytesRead } = await handle.read(into, got, into.length - got, at + got);
    if (bytesRead === 0) throw new Error(`the file has ${at + got} bytes, expected ${at + into.length}`);
    got += bytesRead;
  }
}

/** A file of the user's, opened for reading. */
interface ReadableFile extends RandomAccess {
  close(): Promise<void>;
}

/** Opens a file of the user's. Rejects with `bad_parameter` if it cannot be read or is not a regular file. */
export async function openToRead(path: string): Promise<ReadableFile> {
  const handle = await open(path, "r").catch((error: unknown) => {
    const why = isMissing(error) ? "there is no such file" : messageOf(error);
    throw new SluiceError("bad_parameter", `${path} cannot be read: ${why}`, { cause: error });
  });
  const facts = await handle.stat();
  if (!facts.isFile()) {
    await handle.close();
    throw new SluiceError(
      "bad_parameter",
      `${path} is not a regular file; pipe its data in and use - instead`,
    );
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

/** Syncs a folder, which makes renames in it durable. Does nothing on Windows, which cannot open folders. */
export async function syncFolder(path: string): Promise<void> {
  if (process.platform === "win32") return;
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

async function asTyped<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    const code = codeOf(error);
    if (code !== "ENOSPC" && code !== "EDQUOT") throw error;
    throw new SluiceError("disk_full", "the disk is full", { cause: error });
  }
}

async function unlessMissing<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

function isMissing(error: unknown): boolean {
  return codeOf(error) === "ENOENT";
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}
