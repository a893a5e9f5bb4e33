import assert from "node:assert/strict";
import { nameContent, startEngine } from "../parts/engine.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { startSeeder } from "../parts/plain-seeder.ts";
import {
  randomFile,
  sha1OfFile,
  sha1OfStream,
  type TempFolder,
  tempFolder,
  torrentOf,
} from "../parts/torrent-files.ts";

const { after, before, describe, test } = await testsThatNeed("time");

const MIB = 1024 * 1024;
/** Memory holds the whole film: nothing is evicted, even on a slow disk. */
const FILM_BYTES = 12 * MIB + 345;
const TIME = { timeout: 120_000 };

describe("content that was played", TIME, () => {
  let scratch: TempFolder;
  let film: string;
  let torrent: Awaited<ReturnType<typeof torrentOf>>;

  before(async () => {
    scratch = await tempFolder("kept");
    film = scratch.file("film.bin");
    await randomFile(film, FILM_BYTES);
    torrent = await torrentOf(film, 256 * 1024, scratch.file("film.torrent"));
  }, TIME);
  after(() => scratch.remove());

  /** Plays the whole film from an engine that already knows its content. */
  async function playAll(engine: { url: string }): Promise<void> {
    const response = await fetch(`${engine.url}/files/${torrent.infohash}/0/film.bin`);
    assert.equal(response.status, 200);
    assert.deepEqual(await sha1OfStream(response.body!), { sha1: await sha1OfFile(film), bytes: FILM_BYTES });
  }

  test("is still present after an immediate stop, and plays without peers", TIME, async () => {
    const dataDir = scratch.file("data");
    const seed = await startSeeder(torrent, scratch.path);
    const first = await startEngine({ dataDir });
    try {
      await nameContent(first, {}, torrent.bytes);
      const magnet = `magnet:?xt=urn:btih:${torrent.infohash}&x.pe=127.0.0.1:${seed.port}`;
      await nameContent(first, { magnet });
      await playAll(first);
    } finally {
      await first.stop();
      // The engine stopped by itself; it was not killed after a timeout.
      assert.match(first.output(), /stopped$/);
      await seed.stop();
    }
    const second = await startEngine({ dataDir });
    try {
      await nameContent(second, { infohash: torrent.infohash });
      await playAll(second);
    } catch (error) {
      throw new Error(`${error}\nthe engine said:\n${second.output()}`, { cause: error });
    } finally {
      await second.stop();
    }
  });
});
