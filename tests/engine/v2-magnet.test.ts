import assert from "node:assert/strict";
import { test } from "node:test";
import type { TransferContent } from "../../src/engine/contract.ts";
import { PieceBufferPool } from "../../src/engine/piece-buffers.ts";
import { PieceMemory } from "../../src/engine/piece-memory.ts";
import { SwarmTransfer } from "../../src/engine/transfer.ts";
import { parseV2TransportFile } from "../../src/wire/v2-metainfo.ts";
import { type TempFolder, tempFolder } from "../parts/torrent-files.ts";
import { sha1, sha256 } from "../wire/make-torrent.ts";
import { makeV2Torrent } from "../wire/make-v2-torrent.ts";
import { keepingLog, someBytes } from "./parts.ts";
import { listenFor, someHouse } from "./transfer-house.ts";

const PIECE = 16_384;
const FILM = someBytes(700 * PIECE + 99, 1);
const MADE = makeV2Torrent({
  name: "top",
  files: { "a.mkv": FILM, "b.srt": someBytes(500, 2), "c.jpg": someBytes(2 * PIECE, 3) },
  pieceLength: PIECE,
});
const FILE = parseV2TransportFile(MADE.bytes, sha1, sha256);
const NEWS = someBytes(40_000, 4);

/** A transfer of the content above, in a folder of its own or an earlier one's. */
async function someTransfer(changes: Partial<TransferContent>, earlier?: TempFolder) {
  const folder = earlier ?? (await tempFolder("v2-magnet"));
  const pool = new PieceBufferPool(32 << 20);
  const house = await someHouse(folder.path, { log: keepingLog(), pool, memory: new PieceMemory(pool) });
  const content = { infohash: MADE.infohash, trackers: [], peers: [], ...changes };
  const transfer = new SwarmTransfer(house, content, Promise.resolve(), () => {});
  const listener = await listenFor(transfer);
  const stop = async () => {
    await listener.close();
    await transfer.stop();
    await house.kept.close();
  };
  return { transfer, folder, address: listener.address, stop };
}

test("SwarmTransfer: a magnet of version 2 gets its piece layers from who has the transport file, keeps them, and hands them on", async () => {
  const giver = await someTransfer({ transportFile: FILE });
  await giver.transfer.ready();
  const first = await someTransfer({ peers: [giver.address] });
  await first.transfer.ready();
  assert.deepEqual(first.transfer.transportFile()?.info, FILE.info);
  await giver.stop();
  // Of the content neither has anything: what it takes to check it goes from hand to hand.
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
  assert.equal(again.transfer.contentId, second.transfer.contentId);
  await again.stop();
  for (const { folder } of [giver, first, second]) await folder.remove();
});

test("SwarmTransfer: a transport file opened later is enough where nobody tells the piece layers", async () => {
  // A magnet's engine that has the metadata alone, as nobody is there who has more.
  const waiting = await someTransfer({});
  const ready = waiting.transfer.ready();
  waiting.transfer.learn(FILE);
  await ready;
  assert.deepEqual(waiting.transfer.transportFile()?.info, FILE.info);
  await waiting.stop();
  await waiting.folder.remove();
});

test("SwarmTransfer: content of version 2 without layers is as before", async () => {
  const small = makeV2Torrent({ name: "news", files: { news: NEWS }, pieceLength: 65_536 });
  const giver = await someTransfer({
    infohash: small.infohash,
    transportFile: parseV2TransportFile(small.bytes, sha1, sha256),
  });
  await giver.transfer.ready();
  const magnet = await someTransfer({ infohash: small.infohash, peers: [giver.address] });
  await magnet.transfer.ready();
  assert.equal(magnet.transfer.files[0]?.size, NEWS.length);
  await Promise.all([magnet.stop(), giver.stop()]);
  for (const { folder } of [giver, magnet]) await folder.remove();
});
