import assert from "node:assert/strict";
import { mkdir, readFile } from "node:fs/promises";
import { runtime } from "#runtime";
import { SluiceError } from "../../src/base/errors.ts";
import { createTransfers } from "../../src/engine/transfers.ts";
import { parseTransportFile } from "../../src/wire/torrent/metainfo.ts";
import { keepingLog, someSettings } from "../engine/parts.ts";
import { startLibtorrent } from "../parts/libtorrent.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { randomFile, sha1OfFile, sha1OfStream, tempFolder, torrentOf } from "../parts/torrent-files.ts";
import { sha1 } from "../wire/make-torrent.ts";

const { test } = await testsThatNeed("libtorrent");

const MIB = 1024 * 1024;

for (const [pieceMib, memoryMib, cacheMib] of [
  [16, 32, 0],
  [16, 32, 64],
  [32, 32, 0],
  [32, 64, 0],
] as const) {
  const name = `pieces of ${pieceMib} MiB within ${memoryMib} MiB of memory, ${cacheMib} MiB of disk`;
  test(`Transfers: ${name}: complete download from a libtorrent seeder`, { timeout: 60_000 }, async () => {
    const scratch = await tempFolder("large-pieces");
    await mkdir(scratch.file("seed"));
    const film = scratch.file("seed/film.bin");
    const length = 4 * pieceMib * MIB + 12_345;
    await randomFile(film, length);
    const torrent = await torrentOf(film, pieceMib * MIB, scratch.file("film.torrent"));
    const seeder = await startLibtorrent("seed", torrent.path, scratch.file("seed"));
    const settings = someSettings(scratch.file("data"), {
      memoryLimitBytes: memoryMib * MIB,
      cacheLimitBytes: cacheMib * MIB,
    });
    const noMedia = () => Promise.reject(new SluiceError("unsupported_container", "none here"));
    const transfers = await createTransfers(runtime, settings, keepingLog(), noMedia);
    try {
      const transportFile = parseTransportFile(new Uint8Array(await readFile(torrent.path)), sha1);
      const { infohash } = transportFile;
      const peers = [{ host: "127.0.0.1", port: seeder.port }];
      const transfer = transfers.open({ infohash, transportFile, trackers: [], peers });
      await transfer.ready();
      const got = await sha1OfStream(transfer.source(0).open({ start: 0, end: length }));
      assert.deepEqual(got, { sha1: await sha1OfFile(film), bytes: length });
    } finally {
      await transfers.close();
      await seeder.stop();
      await scratch.remove();
    }
  });
}
