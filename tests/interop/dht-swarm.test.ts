import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { nameContent, startEngine } from "../parts/engine.ts";
import { startLibtorrent } from "../parts/libtorrent.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { randomFile, sha1OfFile, sha1OfStream, tempFolder, torrentOf } from "../parts/torrent-files.ts";

const { test } = await testsThatNeed("libtorrent");

const SIZE = 3 * 1024 * 1024 + 123;

test("DHT alone: a file of libtorrent is had here by its infohash", {
  timeout: 180_000,
}, async () => {
  const scratch = await tempFolder("dht-swarm");
  const ends: (() => Promise<unknown>)[] = [];
  try {
    await mkdir(scratch.file("seed"));
    const file = scratch.file("seed/film.bin");
    await randomFile(file, SIZE);
    const { path, infohash } = await torrentOf(file, 64 * 1024, scratch.file("film.torrent"));
    const wanted = await sha1OfFile(file);
    // An engine without content is the DHT node through which the others find each other.
    const env = (nodes: string) => ({ SLUICE_DHT: "on", SLUICE_DHT_NODES: nodes, SLUICE_LOG: "debug" });
    const middle = await startEngine({ env: env("") });
    ends.push(middle.stop);
    const node = `127.0.0.1:${middle.p2pPort}`;
    const seeder = await startLibtorrent("seed", path, scratch.file("seed"), { flags: ["--dht", node] });
    ends.push(seeder.stop);
    const engine = await startEngine({ env: env(node) });
    ends.push(engine.stop);
    await nameContent(engine, { infohash });
    const answer = await fetch(`${engine.url}/files/${infohash}/0/film.bin`);
    assert.equal(answer.status, 200, engine.output());
    assert.deepEqual(await sha1OfStream(answer.body!), { sha1: wanted, bytes: SIZE });
  } finally {
    for (const end of ends.reverse()) await end();
    await scratch.remove();
  }
});
