import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { basename } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { type EngineProcess, startEngine, startSession } from "../parts/engine.ts";
import { randomFile, sha1OfFile, sha1OfStream, tempFolder, torrentOf } from "../parts/torrent-files.ts";
import {
  aria2,
  type ForeignPeer,
  libtorrent,
  startTracker,
  transmission,
  webtorrent,
} from "./other-peers.ts";

const SIZE = 24 * 1024 * 1024 + 12_345;

const WEBTORRENT_FOLDER = fileURLToPath(new URL("./webtorrent/node_modules", import.meta.url));

for (const peer of [libtorrent, transmission, aria2, webtorrent]) {
  const absent = peer === webtorrent && !existsSync(WEBTORRENT_FOLDER);
  const skip = absent && "webtorrent is not installed: npm ci --ignore-scripts in tests/interop/webtorrent";
  test(`interop with ${peer.name}: the whole file both ways, hash-equal`, { skip, timeout: 120_000 }, () =>
    bothWays(peer),
  );
}

/** The peer seeds and we download; then we are the only one who has it, and a new peer downloads from us. */
async function bothWays(peer: ForeignPeer): Promise<void> {
  const scratch = await tempFolder(`interop-${peer.name}`);
  const ends: (() => Promise<unknown>)[] = [];
  try {
    await Promise.all(["seed", "leech"].map((name) => mkdir(scratch.file(name))));
    const file = scratch.file("seed/film.bin");
    await randomFile(file, SIZE);
    const bare = await torrentOf(file, 256 * 1024, scratch.file("bare.torrent"));
    const tracker = await startTracker(scratch.path, [bare.infohash]);
    ends.push(tracker.process.stop);
    const torrent = await torrentOf(file, 256 * 1024, scratch.file("film.torrent"), [
      tracker.httpUrl,
      tracker.udpUrl,
    ]);
    const wanted = await sha1OfFile(file);

    const seeder = await peer.seed(torrent.path, file, scratch.path);
    ends.push(seeder.process.stop);
    const engine = await startEngine({ env: { SLUICE_CACHE_LIMIT: "1GB" } });
    ends.push(engine.stop);
    await downloads(engine, torrent, wanted);
    await seeder.process.stop();

    const leecher = await peer.leech(
      torrent.path,
      scratch.file("leech"),
      scratch.path,
      `127.0.0.1:${engine.p2pPort}`,
    );
    ends.push(leecher.stop);
    await uploads(engine, torrent, scratch.file("leech"), wanted, leecher.output);
  } finally {
    for (const end of ends.reverse()) await end();
    await scratch.remove();
  }
}

async function downloads(engine: EngineProcess, torrent: Torrent, wanted: string): Promise<void> {
  await startSession(engine, "getstream", {}, torrent.bytes);
  const response = await fetch(`${engine.url}/files/${torrent.infohash}/0/film.bin`);
  assert.equal(response.status, 200);
  const got = await sha1OfStream(response.body!);
  assert.deepEqual(got, { sha1: wanted, bytes: SIZE });
}

/** Asks again and again whether the leecher's folder holds the whole file, with the engine's session kept alive. */
async function uploads(
  engine: EngineProcess,
  torrent: Torrent,
  folder: string,
  wanted: string,
  said: () => string,
) {
  const session = await startSession(engine, "getstream", {}, torrent.bytes);
  for (let tries = 0; tries < 450; tries++) {
    await (await fetch(session.stat_url)).arrayBuffer();
    const name = readdirSync(folder).find((entry) => /^film\.bin(\.part)?$/.test(entry));
    if (name !== undefined && (await sha1OfFile(`${folder}/${basename(name)}`)) === wanted) return;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  assert.fail(
    `the leecher never had the whole file; it said:\n${said()}\nthe engine said:\n${engine.output()}`,
  );
}

type Torrent = Awaited<ReturnType<typeof torrentOf>>;
