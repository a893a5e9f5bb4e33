import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { type EngineProcess, nameContent, startEngine } from "../parts/engine.ts";
import { torrentByLibtorrent } from "../parts/libtorrent.ts";
import type { RunningProcess } from "../parts/process.ts";
import { randomFile, sha1OfFile, sha1OfStream, tempFolder } from "../parts/torrent-files.ts";
import { type ForeignPeer, startTracker } from "./other-peers.ts";

const FIRST_BYTE = { range: "bytes=0-0" };

/** The peer seeds and the engine downloads; then the engine is the only seed and a new peer downloads from it. */
export async function bothWays(
  peer: ForeignPeer,
  options: { sizeBytes: number; env?: Record<string, string> },
): Promise<void> {
  const scratch = await tempFolder(`interop-${peer.name}`);
  const ends: (() => Promise<unknown>)[] = [];
  try {
    await Promise.all(["seed", "leech"].map((name) => mkdir(scratch.file(name))));
    const file = scratch.file("seed/film.bin");
    await randomFile(file, options.sizeBytes);
    const bare = await torrentByLibtorrent(file, 256 * 1024, scratch.file("bare.torrent"));
    const tracker = await startTracker(scratch.path, [bare.infohash]);
    ends.push(tracker.process.stop);
    const torrent = await torrentByLibtorrent(file, 256 * 1024, scratch.file("film.torrent"), [
      tracker.httpUrl,
      tracker.udpUrl,
    ]);
    const wanted = await sha1OfFile(file);

    const seeder = await peer.seed(torrent.path, file, scratch.path);
    ends.push(seeder.process.stop);
    if (peer.announcesSeed) await tracker.hasSeed(torrent.infohash);
    // The whole file fits into memory: when all peers run at once, the disk may be too slow to store every piece.
    const env = {
      SLUICE_CACHE_LIMIT: "1GB",
      SLUICE_MEMORY_LIMIT: "64MiB",
      SLUICE_LOG: "debug",
      ...options.env,
    };
    const engine = await startEngine({ env });
    ends.push(engine.stop);
    if (!peer.announcesSeed) await nameContent(engine, { magnet: magnetOf(torrent, seeder.port) });
    await downloads(engine, torrent, { sha1: wanted, bytes: options.sizeBytes });
    await seeder.process.stop();

    const leecher = await peer.leech(
      torrent.path,
      scratch.file("leech"),
      scratch.path,
      `127.0.0.1:${engine.p2pPort}`,
    );
    ends.push(leecher.process.stop);
    await uploads(engine, torrent, scratch.file("leech"), wanted, leecher);
  } finally {
    for (const end of ends.reverse()) await end();
    await scratch.remove();
  }
}

async function downloads(
  engine: EngineProcess,
  torrent: Torrent,
  wanted: { sha1: string; bytes: number },
): Promise<void> {
  await nameContent(engine, {}, torrent.bytes);
  const response = await fetch(`${engine.url}/files/${torrent.infohash}/0/film.bin`);
  assert.equal(response.status, 200);
  const got = await sha1OfStream(response.body!);
  assert.deepEqual(got, wanted);
}

/** Polls until the leecher's folder holds the whole file, and keeps the content open meanwhile. */
async function uploads(
  engine: EngineProcess,
  torrent: Torrent,
  folder: string,
  wanted: string,
  leecher: { process: RunningProcess; port?: number },
): Promise<void> {
  if (leecher.port !== undefined) await nameContent(engine, { magnet: magnetOf(torrent, leecher.port) });
  for (let tries = 0; tries < 900; tries++) {
    await (
      await fetch(`${engine.url}/files/${torrent.infohash}/0/film.bin`, { headers: FIRST_BYTE })
    ).arrayBuffer();
    const name = readdirSync(folder).find((entry) => /^film\.bin(\.part)?$/.test(entry));
    if (name !== undefined && (await sha1OfFile(`${folder}/${name}`)) === wanted) return;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  const said = `${leecher.process.output()}\nthe engine said:\n${engine.output()}`;
  assert.fail(`the leecher never had the whole file; it said:\n${said}`);
}

function magnetOf(torrent: Torrent, port: number): string {
  return `magnet:?xt=urn:btih:${torrent.infohash}&x.pe=127.0.0.1:${port}`;
}

type Torrent = Awaited<ReturnType<typeof torrentByLibtorrent>>;
