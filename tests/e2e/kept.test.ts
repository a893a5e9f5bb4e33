import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { nameContent, startEngine } from "../parts/engine.ts";
import { startLibtorrent } from "../parts/libtorrent.ts";
import {
  randomFile,
  sha1OfFile,
  sha1OfStream,
  type TempFolder,
  tempFolder,
  torrentOf,
} from "../parts/torrent-files.ts";

const MIB = 1024 * 1024;
/** Memory holds it whole: nothing has to be given up, however slow the disk is. */
const FILM_BYTES = 12 * MIB + 345;
const TIME = { timeout: 120_000 };

describe("what was played", TIME, () => {
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

  /** Plays the whole film out of an engine that knows it already, or is told of it and of a peer. */
  async function playAll(engine: { url: string }): Promise<void> {
    const response = await fetch(`${engine.url}/files/${torrent.infohash}/0/film.bin`);
    assert.equal(response.status, 200);
    assert.deepEqual(await sha1OfStream(response.body!), { sha1: await sha1OfFile(film), bytes: FILM_BYTES });
  }

  test(
    "is there after the engine was stopped at once, and is played without anybody else",
    TIME,
    async () => {
      const dataDir = scratch.file("data");
      const seed = await startLibtorrent("seed", torrent.path, scratch.path);
      const first = await startEngine({ dataDir });
      try {
        await nameContent(first, {}, torrent.bytes);
        const magnet = `magnet:?xt=urn:btih:${torrent.infohash}&x.pe=127.0.0.1:${seed.port}`;
        await nameContent(first, { magnet });
        await playAll(first);
      } finally {
        await first.stop();
        // By itself: it was not killed for taking too long.
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
    },
  );
});
