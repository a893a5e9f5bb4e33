import { mkdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { nameContent, type RuntimeName, startEngine } from "../parts/engine.ts";
import { startLibtorrent } from "../parts/libtorrent.ts";
import { startProcess, usageOf } from "../parts/process.ts";

const WEBTORRENT = fileURLToPath(new URL("../interop/webtorrent/webtorrent-peer.mjs", import.meta.url));

/** The cost of one download in the downloader's process. */
export interface Cost {
  readonly cpuSeconds: number;
  readonly seconds: number;
  readonly peakBytes: number;
}

/** The content to download and its seeder. */
export interface Job {
  readonly torrent: { readonly path: string; readonly bytes: Uint8Array; readonly infohash: string };
  /** The same with a tracker that knows the seeder. */
  readonly announced: { readonly bytes: Uint8Array };
  readonly size: number;
  /** `127.0.0.1:port` of the libtorrent seeder. */
  readonly seeder: string;
  /** The seeder's HTTP tracker-free way to be found: a magnet with `x.pe`. */
  readonly magnet: string;
  readonly scratch: string;
}

/** libtorrent, sequential, to disk. */
export async function libtorrentDownload(job: Job): Promise<Cost> {
  const folder = await emptyFolder(job);
  const peer = await startLibtorrent("leech", job.torrent.path, folder, {
    peers: [job.seeder],
    flags: ["--sequential", "--exit"],
  });
  const line = await peer.line((text) => text.includes('"complete"'), 300_000);
  await peer.stop();
  await rm(folder, { recursive: true });
  return JSON.parse(line) as Cost;
}

/** webtorrent under Bun, to disk. */
export async function webtorrentDownload(job: Job): Promise<Cost> {
  const folder = await emptyFolder(job);
  const peer = startProcess("bun", [WEBTORRENT, "leech", job.torrent.path, folder, job.seeder]);
  const line = await peer.line((text) => text.includes('"complete"'), 300_000);
  const { peakBytes } = usageOf(peer.pid);
  await peer.stop();
  await rm(folder, { recursive: true });
  return { ...(JSON.parse(line) as Cost), peakBytes };
}

/** Sluice: the whole file, verified, through its HTTP interface into a reader that throws it away. */
export async function sluiceDownload(
  job: Job,
  runtime: RuntimeName,
  env: Record<string, string>,
): Promise<Cost> {
  const engine = await startEngine({ runtime, env });
  const before = usageOf(engine.pid);
  const began = performance.now();
  await nameContent(engine, { magnet: job.magnet });
  const drain = startProcess("curl", [
    "-sf",
    "-o",
    "/dev/null",
    "-w",
    "%{size_download}\\n",
    rawUrl(engine.url, job),
  ]);
  const line = await drain.line((text) => /^\d+$/.test(text), 300_000);
  const seconds = (performance.now() - began) / 1000;
  const used = usageOf(engine.pid);
  await engine.stop();
  if (Number(line) !== job.size) throw new Error(`${line} bytes came instead of ${job.size}`);
  return { cpuSeconds: used.cpuSeconds - before.cpuSeconds, seconds, peakBytes: used.peakBytes };
}

/** Where the raw file is. */
export function rawUrl(engineUrl: string, job: Job): string {
  return `${engineUrl}/files/${job.torrent.infohash}/0/film.bin`;
}

async function emptyFolder(job: Job): Promise<string> {
  const folder = join(dirname(job.torrent.path), "download");
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  return folder;
}
