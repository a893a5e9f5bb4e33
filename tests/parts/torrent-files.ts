import { createHash, randomBytes } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdtemp, open, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join, relative, sep } from "node:path";
import { equalBytes } from "../../src/base/bytes.ts";

/** A temporary folder of one test. */
export interface TempFolder {
  readonly path: string;
  file(name: string): string;
  remove(): Promise<void>;
}

export async function tempFolder(name: string): Promise<TempFolder> {
  const path = await mkdtemp(join(tmpdir(), `sluice-${name}-`));
  return {
    path,
    file: (child) => join(path, child),
    remove: () => rm(path, { recursive: true, force: true }),
  };
}

/** Whether a folder holds all of these files, byte for byte. */
export async function hasFiles(
  folder: string,
  files: Readonly<Record<string, Uint8Array>>,
): Promise<boolean> {
  for (const [name, bytes] of Object.entries(files)) {
    const got = await readFile(join(folder, name)).catch(() => undefined);
    if (!got || !equalBytes(got, bytes)) return false;
  }
  return true;
}

/** A transport file on disk and what it describes. */
export interface TorrentFile {
  /** The path of the transport file. */
  readonly path: string;
  readonly bytes: Uint8Array;
  /** The bencoded `info` dictionary, whose SHA-1 is the infohash. */
  readonly infoBytes: Uint8Array;
  readonly infohash: string;
  readonly pieceLength: number;
  /** The names of the files, without folders, in the order of the content. */
  readonly files: readonly string[];
  /** The files below the folder that holds the content. */
  readonly entries: readonly { readonly path: string; readonly length: number }[];
}

/**
 * Writes the transport file (BEP 3) of a file or folder to `out`. It shares no code with the engine, so that a mistake in the
 * engine's reader cannot hide behind the same mistake here.
 */
export async function torrentOf(
  path: string,
  pieceLength: number,
  out: string,
  trackers: readonly string[] = [],
): Promise<TorrentFile> {
  const isFolder = (await stat(path)).isDirectory();
  const name = basename(path);
  const names = isFolder
    ? (await readdir(path, { recursive: true, withFileTypes: true }))
        .filter((entry) => entry.isFile())
        .map((entry) => relative(path, join(entry.parentPath, entry.name)))
        .sort()
    : [""];
  const entries: { path: string; length: number }[] = [];
  for (const each of names) {
    const { size } = await stat(join(path, each));
    entries.push({ path: join(name, each), length: size });
  }
  const pieces = await pieceHashes(
    entries.map((entry) => join(dirname(path), entry.path)),
    pieceLength,
  );
  const content = isFolder
    ? { files: entries.map(({ length }, i) => ({ length, path: names[i]!.split(sep) })) }
    : { length: entries[0]!.length };
  const infoBytes = bencode({ ...content, name, "piece length": pieceLength, pieces });
  const announce =
    trackers.length === 0 ? {} : { announce: trackers[0]!, "announce-list": trackers.map((url) => [url]) };
  const head = bencode(announce).subarray(0, -1);
  const bytes = Buffer.concat([head, Buffer.from("4:info"), infoBytes, Buffer.from("e")]);
  await writeFile(out, bytes);
  return {
    path: out,
    bytes: new Uint8Array(bytes),
    infoBytes,
    infohash: createHash("sha1").update(infoBytes).digest("hex"),
    pieceLength,
    files: entries.map((entry) => basename(entry.path)),
    entries,
  };
}

/** The SHA-1 of each piece of the files, one after another. */
async function pieceHashes(paths: readonly string[], pieceLength: number): Promise<Buffer> {
  const hashes: Buffer[] = [];
  let [hash, held] = [createHash("sha1"), 0];
  for (const path of paths) {
    for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20 })) {
      for (let part = chunk as Buffer; part.length > 0; ) {
        const taken = part.subarray(0, pieceLength - held);
        hash.update(taken);
        held += taken.length;
        part = part.subarray(taken.length);
        if (held === pieceLength) {
          hashes.push(hash.digest());
          [hash, held] = [createHash("sha1"), 0];
        }
      }
    }
  }
  if (held > 0) hashes.push(hash.digest());
  return Buffer.concat(hashes);
}

type Bencodable =
  | number
  | string
  | Uint8Array
  | readonly Bencodable[]
  | { readonly [key: string]: Bencodable };

function bencode(value: Bencodable): Buffer {
  if (typeof value === "number") return Buffer.from(`i${value}e`);
  if (typeof value === "string") return bencode(Buffer.from(value));
  if (value instanceof Uint8Array) return Buffer.concat([Buffer.from(`${value.length}:`), value]);
  if (Array.isArray(value)) return Buffer.concat([Buffer.from("l"), ...value.map(bencode), Buffer.from("e")]);
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Buffer.concat([
    Buffer.from("d"),
    ...members.flatMap(([key, member]) => [bencode(key), bencode(member)]),
    Buffer.from("e"),
  ]);
}

/** Writes a file of random bytes, some MiB at a time. */
export async function randomFile(path: string, bytes: number): Promise<void> {
  const file = await open(path, "w");
  for (let left = bytes; left > 0; left -= 8 << 20) await file.write(randomBytes(Math.min(left, 8 << 20)));
  await file.close();
}

/** The SHA-1 of a file, in hexadecimal. */
export async function sha1OfFile(path: string): Promise<string> {
  const hash = createHash("sha1");
  const file = await open(path);
  for await (const part of file.createReadStream({ highWaterMark: 1 << 20 })) hash.update(part as Uint8Array);
  return hash.digest("hex");
}

/** The SHA-1 of a stream, in hexadecimal, and its length in bytes. */
export async function sha1OfStream(
  stream: ReadableStream<Uint8Array>,
): Promise<{ sha1: string; bytes: number }> {
  const hash = createHash("sha1");
  let bytes = 0;
  for await (const part of stream) {
    hash.update(part);
    bytes += part.length;
  }
  return { sha1: hash.digest("hex"), bytes };
}
