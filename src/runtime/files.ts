import { constants } from "node:fs";
import { type FileHandle, mkdir, open, readdir, rename, rm, stat, statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { SluiceError } from "../base/errors.ts";
import type { Files, OpenFile } from "./contract.ts";

/** Only the user may read what is kept: folders and files are created so. */
const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;
const PART_BYTES = 64 * 1024;

/** The disk of the machine. A full disk (or quota) rejects with `disk_full`; any other failure as the system says it. */
export const files: Files = {
  async open(path) {
    return openFile(await openCreating(path, constants.O_RDWR | constants.O_CREAT));
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
    const beside = `${path}.new`;
    const handle = await openCreating(beside, constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC);
    try {
      await writeAll(handle, 0, bytes);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(beside, path);
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
    const rights = process.platform === "win32" ? {} : { rights: facts.mode & 0o777 };
    return { size: facts.size, modifiedMs: facts.mtimeMs, ...rights };
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

function openFile(handle: FileHandle): OpenFile {
  return {
    read: (at, into) => readExactly(handle, at, into),
    write: (at, bytes) => writeAll(handle, at, bytes),
    sync: () => asTyped(handle.sync()),
    close: () => handle.close(),
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
    if (bytesRead === 0) throw new Error(`the file ends at ${at + got}, expected ${at + into.length} bytes`);
    got += bytesRead;
  }
}

async function writeAll(handle: FileHandle, at: number, bytes: Uint8Array): Promise<void> {
  for (let put = 0; put < bytes.length; ) {
    const { bytesWritten } = await asTyped(handle.write(bytes, put, bytes.length - put, at + put));
    put += bytesWritten;
  }
}

/** A rename is durable only when its folder is. Systems that cannot open folders keep their own order. */
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
