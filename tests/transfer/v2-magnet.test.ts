import assert from "node:assert/strict";
import { test } from "node:test";
import { runtime } from "#runtime";
import { PieceBufferPool } from "../../src/storage/piece-buffers.ts";
import { PieceMemory } from "../../src/storage/piece-memory.ts";
import type { TransferContent } from "../../src/transfer/contract.ts";
import { SwarmTransfer } from "../../src/transfer/transfer.ts";
import { parseV2TransportFile } from "../../src/wire/torrent/v2-metainfo.ts";
import { keepingLog, someBytes } from "../engine/parts.ts";
import { type TempFolder, tempFolder } from "../parts/torrent-files.ts";
import { sha1, sha256 } from "../wire/make-torrent.ts";
import { makeV2Torrent } from "../wire/make-v2-torrent.ts";
import { listenFor, transferDependencies } from "./transfer-dependencies.ts";

const PIECE = 16_384;
const FILM = someBytes(700 * PIECE + 99, 1);
const RECIPE = {
  name: "top",
  files: { "a.mkv": FILM, "b.srt": someBytes(500, 2), "c.jpg": someBytes(2 * PIECE, 3) },
  pieceLength: PIECE,
};
const MADE = makeV2Torrent(RECIPE);
const FILE = parseV2TransportFile(MADE.bytes, sha1, sha256);
const SMALL_FILM = someBytes(40_000, 4);

/** A transfer of the content above, in a new folder or in that of an earlier transfer. */
async function someTransfer(changes: Partial<TransferContent>, earlier?: TempFolder) {
  const folder = earlier ?? (await tempFolder("v2-magnet"));
  const pool = new PieceBufferPool(32 << 20);
  const dependencies = await transferDependencies(folder.path, {
    log: keepingLog(),
    pool,
    memory: new PieceMemory(pool, runtime.clock),
  });
  const content = { infohash: MADE.infohash, trackers: [], peers: [], ...changes };
  const transfer = new SwarmTransfer(dependencies, content, Promise.resolve(), () => {});
  const listener = await listenFor(transfer);
  const stop = async () => {
    await listener.close();
    await transfer.stop();
    await dependencies.kept.close();
  };
  return { transfer, folder, address: listener.address, stop };
}

test("SwarmTransfer: a v2 magnet gets its piece layers from a peer, stores them and serves them", async () => {
  const giver = await someTransfer({ transportFile: FILE });
  await giver.transfer.ready();
  const first = await someTransfer({ peers: [giver.address] });
  await first.transfer.ready();
  assert.deepEqual(first.transfer.transportFile()?.info, FILE.info);
  await giver.stop();
  // Neither peer has any content: only the piece layers are passed on.
  const second = await someTransfer({ peers: [first.address] });
  await second.transfer.ready();
  assert.deepEqual(second.transfer.transportFile()?.info, FILE.info);
  assert.deepEqual(
    second.transfer.files.map(({ size }) => size),
    [FILM.length, 500, 2 * PIECE],
  );
  await Promise.all([first.stop(), second.stop()]);
  const again = await someTransfer({}, second.folder);
  await again.transfer.ready();
  assert.deepEqual(again.transfer.transportFile()?.info, FILE.info);
  assert.equal(again.transfer.transportFile()?.fileHash, second.transfer.transportFile()?.fileHash);
  await again.stop();
  for (const { folder } of [giver, first, second]) await folder.remove();
});

test("SwarmTransfer: a transport file opened later replaces missing piece layers", async () => {
  // The magnet has only the metadata, because no peer has the layers.
  const waiting = await someTransfer({});
  const ready = waiting.transfer.ready();
  waiting.transfer.learn(FILE);
  await ready;
  assert.deepEqual(waiting.transfer.transportFile()?.info, FILE.info);
  await waiting.stop();
  await waiting.folder.remove();
});

test("SwarmTransfer: peers send the piece layers that a transport file lacks", async () => {
  const { bytes } = makeV2Torrent({ ...RECIPE, extra: { "piece layers": undefined } });
  const incomplete = parseV2TransportFile(bytes, sha1, sha256);
  const giver = await someTransfer({ transportFile: FILE });
  await giver.transfer.ready();
  const first = await someTransfer({ transportFile: incomplete, peers: [giver.address] });
  assert.equal(first.transfer.name, "top");
  await first.transfer.ready();
  assert.deepEqual(first.transfer.transportFile()?.info, FILE.info);
  await Promise.all([first.stop(), giver.stop()]);
  // The layers are stored: the same file needs no peer afterwards.
  const again = await someTransfer({ transportFile: incomplete }, first.folder);
  await again.transfer.ready();
  assert.deepEqual(again.transfer.transportFile()?.info, FILE.info);
  await again.stop();
  // Opened later, the incomplete file neither helps nor disturbs a waiting magnet.
  const waiting = await someTransfer({});
  const ready = waiting.transfer.ready();
  waiting.transfer.learn(incomplete);
  waiting.transfer.learn(FILE);
  await ready;
  assert.deepEqual(waiting.transfer.transportFile()?.info, FILE.info);
  await waiting.stop();
  for (const { folder } of [giver, first, waiting]) await folder.remove();
});

test("SwarmTransfer: v2 content of a single piece needs no layers", async () => {
  const small = makeV2Torrent({ name: "small", files: { small: SMALL_FILM }, pieceLength: 65_536 });
  const giver = await someTransfer({
    infohash: small.infohash,
    transportFile: parseV2TransportFile(small.bytes, sha1, sha256),
  });
  await giver.transfer.ready();
  const magnet = await someTransfer({ infohash: small.infohash, peers: [giver.address] });
  await magnet.transfer.ready();
  assert.equal(magnet.transfer.files[0]?.size, SMALL_FILM.length);
  await Promise.all([magnet.stop(), giver.stop()]);
  for (const { folder } of [giver, magnet]) await folder.remove();
});
