import { fileURLToPath } from "node:url";
import { type RunningProcess, startProcess } from "./process.ts";

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
