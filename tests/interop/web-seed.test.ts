import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runtime } from "#runtime";
import { readKnownFile } from "../../src/storage/known-file.ts";
import { PieceBufferPool } from "../../src/storage/piece-buffers.ts";
import { PieceMemory } from "../../src/storage/piece-memory.ts";
import { SwarmTransfer } from "../../src/transfer/transfer.ts";
import type { TransportFile } from "../../src/wire/torrent/metainfo.ts";
import { keepingLog, someBytes } from "../engine/parts.ts";
import { PYTHON, startLibtorrent } from "../parts/libtorrent.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { run } from "../parts/process.ts";
import { hasFiles, type TempFolder, tempFolder } from "../parts/torrent-files.ts";
import { listenFor, transferDependencies } from "../transfer/transfer-dependencies.ts";
import { until } from "../transfer/web-seeds/seeded-transfer.ts";
import { startNginx } from "./nginx.ts";

const { test } = await testsThatNeed("libtorrent", "nginx");

const FILES: Readonly<Record<string, Uint8Array>> = {
  "a film.mkv": someBytes(300_000, 1),
  "sub/b #1.bin": someBytes(70_000, 2),
  "sub/none": new Uint8Array(0),
  "z.bin": someBytes(65_536, 3),
};
const ALONE = "alone é.mp4";
const PIECE = 32_768;
/** libtorrent's own numbers: hybrid, version 2 alone, version 1 alone. */
const FLAVOURS = { hybrid: 0, v2: 32, v1: 64 } as const;

const MAKE = `
import libtorrent as lt, os, sys
path, piece, flags, out, seeds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5:]
files = lt.file_storage(); lt.add_files(files, path)
torrent = lt.create_torrent(files, piece_size=piece, flags=flags)
for url in seeds: torrent.add_url_seed(url)
lt.set_piece_hashes(torrent, os.path.dirname(path))
open(out, "wb").write(lt.bencode(torrent.generate()))
`;

async function someFiles(): Promise<TempFolder> {
  const folder = await tempFolder("web-seed");
  await mkdir(join(folder.path, "www/top/sub"), { recursive: true });
  for (const [path, bytes] of Object.entries(FILES))
    await writeFile(join(folder.path, "www/top", path), bytes);
  await writeFile(join(folder.path, "www", ALONE), FILES["a film.mkv"]!);
  return folder;
}

async function made(folder: TempFolder, name: string, flags: number, seeds: readonly string[]) {
  const out = folder.file(`${name}-${flags}.torrent`);
  await run(PYTHON, ["-c", MAKE, folder.file(`www/${name}`), String(PIECE), String(flags), out, ...seeds]);
  const known = readKnownFile(new Uint8Array(await readFile(out)), runtime);
  assert.equal(known.kind, "vod");
  return { path: out, file: known.file as TransportFile };
}

/** Plays the content of a transport file from loopback peers and from its web seeds. */
async function play(folder: TempFolder, file: TransportFile, ports: readonly number[] = []) {
  const pool = new PieceBufferPool(16 << 20);
  const memory = new PieceMemory(pool, runtime.clock);
  const house = await transferDependencies(folder.path, { log: keepingLog(), pool, memory });
  const content = {
    infohash: file.infohash,
    transportFile: file,
    trackers: [],
    peers: ports.map((port) => ({ host: "127.0.0.1", port })),
    localWebSeeds: file.webSeeds.map(({ url }) => url),
  };
  const transfer = new SwarmTransfer(house, content, Promise.resolve(), () => {});
  await transfer.ready();
  return transfer;
}

/** The padding between the files of a hybrid (BEP 47). */
const isPad = (path: string) => path.startsWith(".pad/");

async function assertWhole(transfer: SwarmTransfer): Promise<void> {
  const paths = transfer.files.map(({ name }) => name.replace(/^top\//, ""));
  assert.deepEqual(
    paths.filter((path) => path !== ALONE && !isPad(path)).sort(),
    paths.length > 1 ? Object.keys(FILES) : [],
  );
  for (const [index, path] of paths.entries()) {
    if (isPad(path)) continue;
    const bytes = FILES[path] ?? FILES["a film.mkv"]!;
    assert.equal(transfer.files[index]!.size, bytes.length);
    assert.deepEqual(await transfer.source(index).read({ start: 0, end: bytes.length }), bytes, path);
  }
  assert.equal(transfer.figures.bannedPeers, 0);
}

for (const [flavour, flags] of Object.entries(FLAVOURS)) {
  /** Other tests upload version 1 (also the v1 part of a hybrid) to libtorrent. */
  const isGiven = flavour === "v2";
  test(`interop: nginx as the only seed of a ${flavour} torrent of libtorrent, hash-equal`, {
    timeout: 120_000,
  }, async () => {
    const folder = await someFiles();
    const nginx = await startNginx(folder.file("www"), folder.file("nginx"));
    try {
      for (const name of ["top", ALONE]) {
        const { file } = await made(folder, name, flags, [`${nginx.url}/`]);
        const transfer = await play(folder, file);
        await assertWhole(transfer);
        assert.equal(transfer.figures.webSeeds, 1);
        await transfer.stop();
      }
    } finally {
      await nginx.stop();
      await folder.remove();
    }
  });

  test(`interop: a ${flavour} torrent from libtorrent${isGiven ? ", and to libtorrent" : ""}, hash-equal`, {
    timeout: 120_000,
  }, async () => {
    const folder = await someFiles();
    const { path, file } = await made(folder, "top", flags, []);
    const seeder = await startLibtorrent("seed", path, folder.file("www"));
    await seeder.line((line) => line.includes('"seeding"'));
    const transfer = await play(folder, file, [seeder.port]);
    const listener = await listenFor(transfer);
    try {
      await assertWhole(transfer);
      await seeder.stop();
      if (!isGiven) return;
      const us = `127.0.0.1:${listener.address.port}`;
      const leecher = await startLibtorrent("leech", path, folder.file("got"), { peers: [us] });
      await until(() => hasFiles(folder.file("got/top"), FILES));
      await leecher.stop();
    } finally {
      await listener.close();
      await transfer.stop();
      await seeder.stop();
      await folder.remove();
    }
  });
}
