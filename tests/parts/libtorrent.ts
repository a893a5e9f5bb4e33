import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { type RunningProcess, run, startProcess } from "./process.ts";

const SCRIPT = fileURLToPath(new URL("../interop/libtorrent_peer.py", import.meta.url));

/** Debian's own Python, for which python3-libtorrent is built. */
export const PYTHON = "/usr/bin/python3";

/** A libtorrent peer that runs beside the test. */
export interface LibtorrentPeer extends RunningProcess {
  readonly port: number;
}

/** Starts libtorrent as a seeder or a leecher of one torrent; resolves when it listens, on 127.0.0.1 unless the flags name another address. */
export async function startLibtorrent(
  role: "seed" | "leech",
  torrent: string,
  folder: string,
  options: { peers?: readonly string[]; flags?: readonly string[] } = {},
): Promise<LibtorrentPeer> {
  const peers = (options.peers ?? []).flatMap((peer) => ["--peer", peer]);
  const started = startProcess(PYTHON, [SCRIPT, role, torrent, folder, ...peers, ...(options.flags ?? [])]);
  const line = await started.line((text) => text.includes('"listening"'));
  return { ...started, port: (JSON.parse(line) as { port: number }).port };
}

const MAKE = `
import libtorrent as lt, os, sys
path, piece, out, trackers = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4:]
files = lt.file_storage(); lt.add_files(files, path)
torrent = lt.create_torrent(files, piece_size=piece, flags=64)  # 64: v1 only
for url in trackers: torrent.add_tracker(url)
lt.set_piece_hashes(torrent, os.path.dirname(path))
open(out, "wb").write(lt.bencode(torrent.generate()))
print(lt.torrent_info(out).info_hashes().v1)
`;

/** Writes the transport file of a file or folder to `out` with libtorrent. */
export async function torrentByLibtorrent(
  path: string,
  pieceLength: number,
  out: string,
  trackers: readonly string[] = [],
) {
  const printed = await run(PYTHON, ["-c", MAKE, path, String(pieceLength), out, ...trackers]);
  return { path: out, bytes: new Uint8Array(await readFile(out)), infohash: printed.trim() };
}
