import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { test } from "node:test";
import { runtime } from "#runtime";
import { SluiceError } from "../../src/base/errors.ts";
import { createTransfers } from "../../src/engine/transfers.ts";
import { inFolder } from "../contract/folder.ts";
import { keepingLog, putPieces, someCache, someContent, someSettings, someStore } from "../engine/parts.ts";
import { soon } from "./gated-disk.ts";

const MIB = 1024 * 1024;
const PIECE = 256 * 1024;
const LIMITS = { memory: 64 * MIB, disk: 256 * MIB };

/** A mutual exclusion lock. */
function oneLock() {
  let isHeld = false;
  return async () => {
    if (isHeld) return undefined;
    isHeld = true;
    return () => {
      isHeld = false;
    };
  };
}

/** A cache owned by another program, with the first two pieces of some content. */
async function ownedCache(path: string) {
  const lock = oneLock();
  const { file, content } = someContent(4 * MIB, PIECE);
  const owner = await someCache(path, LIMITS, { lock });
  const owned = await someStore(owner, file);
  putPieces(owned.store, owner.pool, content, [0, 1]);
  await owned.folder.close();
  return { lock, file, content, owner };
}

test("DiskCache: a second program reads the cache and neither adds nor removes pieces", () =>
  inFolder(async (path) => {
    const { lock, file, content, owner } = await ownedCache(path);
    // The state of a folder before its first record.
    await runtime.files.replace(`${path}/${"ab".repeat(20)}/0.pieces`, new Uint8Array(10));
    const guest = await someCache(path, { ...LIMITS, disk: 1 }, { lock });
    const visiting = await someStore(guest, file);
    assert.deepEqual(await visiting.store.load(1), content.subarray(PIECE, 2 * PIECE));
    assert.equal(visiting.store.isOnDisk, false);
    putPieces(visiting.store, guest.pool, content, [5]);
    assert.ok(visiting.store.held.has(5));
    await visiting.folder.close();
    const unknown = someContent(MIB, PIECE);
    await guest.cache.openFresh(unknown.file.infohash, unknown.file.info).close();
    await guest.cache.close();
    assert.deepEqual((await readdir(path)).sort(), [file.infohash, "ab".repeat(20)].sort());
    const { store } = await someStore(owner, file);
    assert.equal(store.held.count, 2);
  }));

test("DiskCache: a piece that the owner evicts while a guest uses it is fetched again", () =>
  inFolder(async (path) => {
    const { lock, file } = await ownedCache(path);
    const guest = await someCache(path, LIMITS, { lock });
    const { store, dropped, folder } = await someStore(guest, file);
    await runtime.files.remove(`${path}/${file.infohash}/0.pieces`);
    assert.equal(await store.load(1), undefined);
    assert.deepEqual(dropped, [1]);
    await folder.close();
  }));

test("DiskCache: a second program gets the cache as soon as the first has ended", () =>
  inFolder(async (path) => {
    const lock = oneLock();
    const { file, content } = someContent(4 * MIB, PIECE);
    const first = await someCache(path, LIMITS, { lock });
    const second = await someCache(path, LIMITS, { lock });
    const owned = await someStore(first, file);
    putPieces(owned.store, first.pool, content, [0]);
    await owned.folder.close();
    await first.cache.close();
    const now = await someStore(second, file);
    putPieces(now.store, second.pool, content, [1]);
    await now.folder.close();
    assert.equal(now.folder.bytes, 2 * PIECE);
    assert.equal(second.cache.figures().inactiveBytes, 2 * PIECE);
  }));

test("Transfers: a second engine with the same data folder removes nothing from the cache", () =>
  inFolder(async (path) => {
    const { file, content } = someContent(4 * MIB, PIECE);
    const noMedia = () => Promise.reject(new SluiceError("unsupported_container", "none here"));
    const open = () => createTransfers(runtime, someSettings(path), keepingLog(), noMedia);
    const seeded = await someCache(`${path}/cache`, LIMITS);
    const { store, folder } = await someStore(seeded, file);
    putPieces(store, seeded.pool, content, Array(16).keys());
    await folder.close();
    const first = await open();
    const named = { infohash: file.infohash, transportFile: file, trackers: [], peers: [] };
    await first.open(named).ready();
    await runtime.files.remove(`${path}/cache/${file.infohash}/record.json`);
    const second = await open();
    await second.open(named).ready();
    assert.deepEqual(await second.cacheFigures().then(({ activeInUse }) => activeInUse), 0);
    await second.close();
    await first.close();
    const third = await open();
    const again = third.open(named);
    await again.ready();
    assert.equal(again.progress(0), 100);
    await soon(async () => (await third.cacheFigures()).activeInUse === content.length);
    await third.close();
  }));
