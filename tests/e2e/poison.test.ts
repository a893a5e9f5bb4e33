import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdir, readFile } from "node:fs/promises";
import { nameContent, startEngine } from "../parts/engine.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { type PlainSeeder, startPlainSeeder } from "../parts/plain-seeder.ts";
import { randomFile, sha1OfFile, sha1OfStream, tempFolder, torrentOf } from "../parts/torrent-files.ts";

const { test } = await testsThatNeed("time");

const SIZE = 24 * 1024 * 1024;
const PIECE = 256 * 1024;

test("10 poisoners among 20 peers: every byte is correct, and only the poisoners are banned", {
  timeout: 120_000,
}, async () => {
  const scratch = await tempFolder("poison");
  const seeders: PlainSeeder[] = [];
  try {
    await mkdir(scratch.file("seed"));
    const file = scratch.file("seed/film.bin");
    await randomFile(file, SIZE);
    const torrent = await torrentOf(file, PIECE, scratch.file("film.torrent"));
    const content = new Uint8Array(await readFile(file));
    const spoil = (block: Buffer) => block.set(randomBytes(16), 100);
    for (let i = 0; i < 20; i++) {
      const lie = i % 2 === 0 ? { spoil } : {};
      seeders.push(await startPlainSeeder(torrent.infohash, content, PIECE, lie));
    }
    const engine = await startEngine({ env: { SLUICE_LOG: "info" } });
    try {
      const peers = seeders.map(({ port }) => `&x.pe=127.0.0.1:${port}`).join("");
      await nameContent(engine, {}, torrent.bytes);
      await nameContent(engine, { magnet: `magnet:?xt=urn:btih:${torrent.infohash}${peers}` });
      const got = await sha1OfStream(
        (await fetch(`${engine.url}/files/${torrent.infohash}/0/film.bin`)).body!,
      );
      assert.deepEqual(got, { sha1: await sha1OfFile(file), bytes: SIZE });
      const banned = [...engine.output().matchAll(/peer banned.*peer=127\.0\.0\.1:(\d+)/g)].map((match) =>
        Number(match[1]),
      );
      const liars = new Set(seeders.filter((_, i) => i % 2 === 0).map(({ port }) => port));
      assert.deepEqual(
        banned.filter((port) => !liars.has(port)),
        [],
        "an innocent peer was banned",
      );
      // A poisoner that sent a block must be disconnected; one without a request did no harm.
      const askedLiars = seeders
        .filter((seeder, i) => i % 2 === 0 && seeder.blocks > 0)
        .map(({ port }) => port);
      assert.deepEqual(
        askedLiars.filter((port) => !banned.includes(port)),
        [],
        "a liar was not banned",
      );
      assert.ok(askedLiars.length > 0, "no liar was asked, so nothing was tested");
    } finally {
      await engine.stop();
    }
  } finally {
    for (const seeder of seeders) await seeder.stop();
    await scratch.remove();
  }
});
