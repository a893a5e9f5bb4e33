import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { nameContent, startEngine, startSession } from "../parts/engine.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { startSeeder } from "../parts/plain-seeder.ts";
import { run, usageOf } from "../parts/process.ts";
import {
  randomFile,
  sha1OfFile,
  sha1OfStream,
  type TempFolder,
  tempFolder,
  torrentOf,
} from "../parts/torrent-files.ts";

const { test } = await testsThatNeed("ffmpeg");

const SIZE = 192 * 1024 * 1024;
const STALLED = 50;
/**
 * The memory limit for the stalled players. Pushing to them would cost hundreds of megabytes. V8 gives memory back late and in
 * large pieces, so on Deno and Node the figure is less precise.
 */
const GROWTH_LIMIT_BYTES = (process.versions.bun ? 64 : 112) * 1024 * 1024;

test("50 players that stop reading: memory stays flat, and the one that reads gets every byte", {
  timeout: 300_000,
}, async () => {
  const scratch = await tempFolder("players");
  const stalled: Socket[] = [];
  try {
    await mkdir(scratch.file("seed"));
    const file = scratch.file("seed/film.bin");
    await randomFile(file, SIZE);
    const torrent = await torrentOf(file, 1024 * 1024, scratch.file("film.torrent"));
    const seeder = await startSeeder(torrent, scratch.file("seed"));
    const engine = await startEngine();
    try {
      const magnet = `magnet:?xt=urn:btih:${torrent.infohash}&x.pe=127.0.0.1:${seeder.port}`;
      await nameContent(engine, { magnet });
      const path = `/files/${torrent.infohash}/0/film.bin`;
      // The baseline is the memory with one reader.
      await sha1OfStream((await fetch(`${engine.url}${path}`)).body!);
      const before = usageOf(engine.pid).residentBytes;
      for (let i = 0; i < STALLED; i++) stalled.push(await stalledPlayer(new URL(engine.url), path));
      const reading = await sha1OfStream((await fetch(`${engine.url}${path}`)).body!);
      assert.deepEqual(reading, { sha1: await sha1OfFile(file), bytes: SIZE });
      const grown = usageOf(engine.pid).residentBytes - before;
      assert.ok(grown <= GROWTH_LIMIT_BYTES, `memory grew by ${(grown / 1e6).toFixed(0)} MB`);
    } finally {
      for (const socket of stalled) socket.destroy();
      await engine.stop();
      await seeder.stop();
    }
  } finally {
    await scratch.remove();
  }
});

test("50 players of a transport stream that stop reading: memory stays flat, and HLS goes on beside them", {
  timeout: 300_000,
}, async () => {
  const scratch = await tempFolder("ts-players");
  const stalled: Socket[] = [];
  try {
    await mkdir(scratch.file("seed"));
    const torrent = await torrentOf(await longFilm(scratch), 1024 * 1024, scratch.file("film.torrent"));
    const seeder = await startSeeder(torrent, scratch.file("seed"));
    const engine = await startEngine();
    try {
      const magnet = `magnet:?xt=urn:btih:${torrent.infohash}&x.pe=127.0.0.1:${seeder.port}`;
      const session = await startSession(engine, "manifest.m3u8", { magnet });
      const manifest = await (await fetch(session.playback_url)).text();
      const segments = manifest.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
      const play = async (from: number, to: number) => {
        let least = Number.POSITIVE_INFINITY;
        for (const name of segments.slice(from, to)) {
          const answer = await fetch(new URL(name, session.playback_url));
          assert.ok(answer.ok, `${name} answered ${answer.status}`);
          assert.ok((await answer.arrayBuffer()).byteLength > 0);
          // Segments at full speed produce garbage: the minimum is the memory really held.
          least = Math.min(least, usageOf(engine.pid).residentBytes);
        }
        return least;
      };
      const half = segments.length >> 1;
      // The first quarter is a warm-up, so that the memory of playback is part of the baseline.
      await play(0, half >> 1);
      const before = await play(half >> 1, half);
      const path = `/ace/getstream?infohash=${torrent.infohash}`;
      for (let i = 0; i < STALLED; i++) stalled.push(await stalledPlayer(new URL(engine.url), path));
      // Retained memory stays in every sample; garbage disappears in some, so take the minimum.
      let grown = Number.POSITIVE_INFINITY;
      for (let look = 0; look < 8 && grown > GROWTH_LIMIT_BYTES; look++)
        grown = Math.min(grown, (await play(half, segments.length)) - before);
      assert.ok(grown <= GROWTH_LIMIT_BYTES, `memory grew by ${(grown / 1e6).toFixed(0)} MB`);
    } finally {
      for (const socket of stalled) socket.destroy();
      await engine.stop();
      await seeder.stop();
    }
  } finally {
    await scratch.remove();
  }
});

/** About 200 MB of film: half a minute that hardly compresses, again and again. */
async function longFilm(scratch: TempFolder): Promise<string> {
  const [part, film] = [scratch.file("part.mp4"), scratch.file("seed/film.mp4")];
  const sources = ["-f", "lavfi", "-i", "testsrc2=size=1280x720:rate=25", "-f", "lavfi", "-i", "sine=440"];
  const codecs = ["-c:v", "libx264", "-preset", "ultrafast", "-b:v", "8M", "-g", "50", "-c:a", "aac"];
  const noise = ["-vf", "noise=alls=40:allf=t", "-t", "20"];
  await run("ffmpeg", ["-v", "error", ...sources, ...noise, ...codecs, part]);
  await run("ffmpeg", ["-v", "error", "-stream_loop", "9", "-i", part, "-c", "copy", film]);
  return film;
}

/** Asks for the file, waits for the first bytes, and never reads again. */
async function stalledPlayer(url: URL, path: string): Promise<Socket> {
  const socket = connect(Number(url.port), url.hostname);
  socket.write(`GET ${path} HTTP/1.1\r\nHost: ${url.host}\r\n\r\n`);
  await new Promise<void>((resolve, reject) => {
    socket.once("data", () => resolve());
    socket.once("error", reject);
  });
  socket.pause();
  return socket;
}
