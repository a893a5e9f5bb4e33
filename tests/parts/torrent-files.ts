import { createHash, randomBytes } from "node:crypto";
import { mkdtemp, open, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { equalBytes } from "../../src/base/bytes.ts";
import { PYTHON } from "./libtorrent.ts";
import { run } from "./process.ts";

/** Makes a torrent with libtorrent, so that it is not our own reader that wrote what we read. */
const MAKE = `
import libtorrent as lt, os, sys
path, piece, out, trackers = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4:]
files = lt.file_storage(); lt.add_files(files, path)
torrent = lt.create_torrent(files, piece_size=piece, flags=64)  # 64: v1 only
for url in trackers: torrent.add_tracker(url)
lt.set_piece_hashes(torrent, os.path.dirname(path))
open(out, "wb").write(lt.bencode(torrent.generate()))
made = lt.torrent_info(out)
print("infohash", made.info_hashes().v1)
for i in range(made.num_files()): print("file", made.files().file_name(i))
`;

/** A folder of the test's own under the system's temporary one. */
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

/** Makes the transport file of a file or folder; returns its path, bytes, infohash and the names of its files. */
export async function torrentOf(
  path: string,
  pieceLength: number,
  out: string,
  trackers: readonly string[] = [],
) {
  const said = await run(PYTHON, ["-c", MAKE, path, String(pieceLength), out, ...trackers]);
  const infohash = /infohash ([0-9a-f]{40})/.exec(said)![1]!;
  const files = [...said.matchAll(/^file (.*)$/gm)].map((match) => match[1]!);
  return { path: out, bytes: new Uint8Array(await readFile(out)), infohash, files };
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

/** The SHA-1 of what a stream brings, in hexadecimal, and how many bytes it brought. */
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
