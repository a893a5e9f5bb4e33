import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { runtime } from "#runtime";
import { equalBytes } from "../../src/base/bytes.ts";
import { PieceBufferPool } from "../../src/storage/piece-buffers.ts";
import { PieceMemory } from "../../src/storage/piece-memory.ts";
import { SwarmTransfer } from "../../src/transfer/transfer.ts";
import { parseMagnet } from "../../src/wire/torrent/magnet.ts";
import { keepingLog, someBytes } from "../engine/parts.ts";
import { PYTHON, startLibtorrent } from "../parts/libtorrent.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { run } from "../parts/process.ts";
import { hasFiles, tempFolder } from "../parts/torrent-files.ts";
import { listenFor, transferDependencies } from "../transfer/transfer-dependencies.ts";
import { until } from "../transfer/web-seeds/seeded-transfer.ts";

const { test } = await testsThatNeed("libtorrent");

/** More pieces than one hash request may cover, in files of many pieces, of two, and of one. With pieces of 16 KiB the
 * pieces are the leaves; 513 leaves make the last one incomplete. */
const RECIPES = [
  { pieceLength: 32_768, filmBytes: 1_100 * 32_768 + 777 },
  { pieceLength: 16_384, filmBytes: 513 * 16_384 },
];

type Files = Readonly<Record<string, Uint8Array>>;

/** Makes a torrent of version 2 alone, and a magnet that holds only the infohash. */
const MAKE = `
import libtorrent as lt, os, sys
path, piece, out = sys.argv[1], int(sys.argv[2]), sys.argv[3]
files = lt.file_storage(); lt.add_files(files, path)
torrent = lt.create_torrent(files, piece_size=piece, flags=32)
lt.set_piece_hashes(torrent, os.path.dirname(path))
data = lt.bencode(torrent.generate())
open(out, "wb").write(data)
print("magnet:?xt=urn:btmh:1220" + str(lt.torrent_info(lt.bdecode(data)).info_hashes().v2))
`;

/** Transfer dependencies with enough memory for all of the content. */
async function someRoomyHouse(path: string) {
  const pool = new PieceBufferPool(64 << 20);
  const memory = new PieceMemory(pool, runtime.clock);
  return transferDependencies(path, { log: keepingLog(), pool, memory });
}

/** Opens a magnet with these peers, as a player would. */
async function open(path: string, magnet: string, ports: readonly number[]) {
  const { infohash } = parseMagnet(magnet);
  assert.ok(infohash);
  const peers = ports.map((port) => ({ host: "127.0.0.1", port }));
  const house = await someRoomyHouse(path);
  const content = { infohash, trackers: [], peers };
  const transfer = new SwarmTransfer(house, content, Promise.resolve(), () => {});
  await transfer.ready();
  return { house, transfer };
}

async function assertWhole(transfer: SwarmTransfer, files: Files): Promise<void> {
  for (const [index, { name, size }] of transfer.files.entries()) {
    const bytes = files[name.replace(/^top\//, "")]!;
    assert.equal(size, bytes.length, name);
    assert.ok(equalBytes(await transfer.source(index).read({ start: 0, end: size }), bytes), name);
  }
  assert.equal(transfer.files.length, 3);
  assert.equal(transfer.figures.bannedPeers, 0);
}

for (const { pieceLength, filmBytes } of RECIPES) {
  test(`interop: a magnet of version 2 alone with pieces of ${pieceLength} bytes, from libtorrent and then to libtorrent`, {
    timeout: 120_000,
  }, async () => {
    const files: Files = {
      "film.mkv": someBytes(filmBytes, 1),
      "poster.jpg": someBytes(2 * pieceLength, 2),
      "film.srt": someBytes(9_000, 3),
    };
    const folder = await tempFolder("v2-magnet");
    await mkdir(folder.file("seed/top"), { recursive: true });
    for (const [path, bytes] of Object.entries(files))
      await writeFile(folder.file(`seed/top/${path}`), bytes);
    const torrent = folder.file("top.torrent");
    const made = await run(PYTHON, ["-c", MAKE, folder.file("seed/top"), String(pieceLength), torrent]);
    const magnet = made.trim();
    const seeder = await startLibtorrent("seed", torrent, folder.file("seed"));
    await seeder.line((line) => line.includes('"seeding"'));
    const { house, transfer } = await open(folder.path, magnet, [seeder.port]);
    const listener = await listenFor(transfer);
    try {
      await assertWhole(transfer, files);
      await seeder.stop();
      const us = `127.0.0.1:${listener.address.port}`;
      const leecher = await startLibtorrent("leech", magnet, folder.file("got"), { peers: [us] });
      await until(() => hasFiles(folder.file("got/top"), files));
      await leecher.stop();
      assert.equal(transfer.figures.bannedPeers, 0);

      // The piece hashes are stored with the metadata, so no peer has to send them again.
      await house.kept.close();
      const again = await open(folder.path, magnet, []);
      assert.equal(again.transfer.transportFile()?.fileHash, transfer.transportFile()?.fileHash);
      await again.transfer.stop();
    } finally {
      await listener.close();
      await transfer.stop();
      await seeder.stop();
      await folder.remove();
    }
  });
}
