import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { test } from "node:test";
import { inFolder } from "../contract/folder.ts";
import { putPieces, someCache, someContent, someStore } from "../engine/parts.ts";

const MIB = 1024 * 1024;
const LIMITS = { memory: 64 * MIB, disk: 256 * MIB };

test("DiskCache: contents are listed by size, and only those that are not open are removed", () =>
  inFolder(async (path) => {
    const parts = await someCache(path, LIMITS);
    const [open, closed] = [someContent(5 * MIB, 256 * 1024), someContent(9 * MIB, 256 * 1024)];
    const stores = [];
    for (const { file, content } of [open, closed]) {
      const opened = await someStore(parts, file);
      putPieces(opened.store, parts.pool, content, [0, 1, 19]);
      stores.push(opened);
    }
    const [first, second] = stores;
    await second!.folder.close();
    const found = new Map(parts.cache.contents().map((each) => [each.infohash, each]));
    const listed = found.get(closed.file.infohash)!;
    assert.deepEqual([listed.bytes, listed.isOpen], [3 * 256 * 1024, false]);
    assert.ok(Math.abs(listed.lastRead - Date.now() / 1000) < 3600);
    assert.equal(
      await parts.cache.removeContents([open.file.infohash, closed.file.infohash]),
      3 * 256 * 1024,
    );
    assert.deepEqual(await readdir(path), [open.file.infohash]);
    await first!.folder.close();
    assert.deepEqual(
      parts.cache.contents().map(({ infohash, bytes, isOpen }) => [infohash, bytes, isOpen]),
      [[open.file.infohash, 3 * 256 * 1024, false]],
    );
    assert.equal(parts.cache.figures().inactiveBytes, 3 * 256 * 1024);
    assert.equal(await parts.cache.removeContents([open.file.infohash]), 3 * 256 * 1024);
    assert.deepEqual(await readdir(path), []);
    assert.equal(parts.cache.figures().inactiveBytes, 0);
  }));

test("DiskCache: removed content starts again with no pieces", () =>
  inFolder(async (path) => {
    const parts = await someCache(path, LIMITS);
    const { file, content } = someContent(5 * MIB, 256 * 1024);
    const before = await someStore(parts, file);
    putPieces(before.store, parts.pool, content, [0, 1]);
    await before.folder.close();
    // The content is opened while its files are being removed.
    const removal = parts.cache.removeContents([file.infohash]);
    const { store, folder } = await someStore(parts, file);
    await removal;
    assert.equal(store.held.count, 0);
    putPieces(store, parts.pool, content, [3]);
    await folder.close();
    assert.equal(parts.cache.contents()[0]?.bytes, 256 * 1024);
  }));

test("DiskCache: kept content is never evicted, and what does not fit beside it is refused", () =>
  inFolder(async (path) => {
    const [kept, other] = [someContent(4 * MIB, 256 * 1024), someContent(4 * MIB, 256 * 1024)];
    const parts = await someCache(
      path,
      { memory: 64 * MIB, disk: 4 * MIB },
      { isKept: (infohash) => infohash === kept.file.infohash },
    );
    const first = await someStore(parts, kept.file);
    putPieces(first.store, parts.pool, kept.content, [...Array(16).keys()]);
    await first.folder.close();
    const second = await someStore(parts, other.file);
    putPieces(second.store, parts.pool, other.content, [0, 1]);
    await second.folder.close();
    parts.cache.limitChanged();
    assert.deepEqual(
      parts.cache.contents().map(({ infohash, bytes, isKept }) => [infohash, bytes, isKept]),
      [[kept.file.infohash, 4 * MIB, true]],
    );
  }));

test("DiskCache: a process that does not own the cache lists nothing", () =>
  inFolder(async (path) => {
    const { cache } = await someCache(path, LIMITS, { lock: async () => undefined });
    assert.equal(cache.isOwner, false);
    assert.deepEqual(cache.contents(), []);
    assert.equal((await someCache(path, LIMITS)).cache.isOwner, true);
  }));
