import assert from "node:assert/strict";
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { runtime } from "#runtime";
import { SluiceError } from "../../src/base/errors.ts";
import type { Files } from "../../src/runtime/contract.ts";
import { inFolder } from "../contract/folder.ts";
import { keepingLog, putPieces, someCache, someContent, someStore } from "../engine/parts.ts";

const MIB = 1024 * 1024;
const LIMITS = { memory: 64 * MIB, disk: 256 * MIB };

test("DiskCache: pieces survive a restart and are verified when read", () =>
  inFolder(async (path) => {
    const { file, content } = someContent(5 * MIB + 1000, 256 * 1024);
    const before = await someCache(path, LIMITS);
    const first = await someStore(before, file);
    putPieces(first.store, before.pool, content, [0, 1, 2, 7, 20]);
    await first.folder.close();
    first.store.close();
    assert.equal(before.pool.inUseBytes, 0);
    const after = await someCache(path, LIMITS);
    assert.equal(after.cache.figures().inactiveBytes, first.folder.bytes);
    const { store, folder, dropped } = await someStore(after, file);
    assert.equal(store.held.count, 5);
    for (const piece of [0, 7, 20]) {
      const at = piece * 256 * 1024;
      assert.deepEqual(await store.load(piece), content.subarray(at, at + store.pieceBytes(piece)));
    }
    assert.deepEqual(dropped, []);
    await folder.close();
  }));

test("PieceStore.releaseSaved: frees pieces that are on disk and outside all windows, and they stay held", () =>
  inFolder(async (path) => {
    const { file, content } = someContent(4 * MIB, 256 * 1024);
    const parts = await someCache(path, LIMITS);
    const { store, folder, dropped } = await someStore(parts, file);
    putPieces(store, parts.pool, content, [0, 1, 2]);
    store.releaseSaved();
    assert.equal(parts.pool.inUseBytes, 3 * 256 * 1024, "nothing is on disk yet");
    await folder.close();
    store.moveWindow(undefined, { start: 0, end: 1 });
    store.releaseSaved();
    assert.equal(parts.pool.inUseBytes, 256 * 1024);
    assert.deepEqual([store.peek(1), store.held.count, dropped], [undefined, 3, []]);
    store.close();
  }));

test("DiskCache: a damaged piece is dropped and never returned", () =>
  inFolder(async (path) => {
    const { file, content } = someContent(4 * MIB, 256 * 1024);
    const before = await someCache(path, LIMITS);
    const first = await someStore(before, file);
    putPieces(first.store, before.pool, content, [0, 1, 2]);
    await first.folder.close();
    const name = `${path}/${file.infohash}/0.pieces`;
    const bytes = await readFile(name);
    bytes[256 * 1024 + 5]! ^= 1;
    await writeFile(name, bytes);
    const { store, folder, dropped } = await someStore(await someCache(path, LIMITS), file);
    assert.equal(await store.load(1), undefined);
    assert.deepEqual(dropped, [1]);
    assert.equal(store.held.has(1), false);
    assert.ok(await store.load(2));
    await folder.close();
  }));

test("DiskCache: after a crash pieces missing from the record are found, and pieces beyond the end of a truncated file are not", () =>
  inFolder(async (path) => {
    const { file, content } = someContent(4 * MIB, 256 * 1024);
    const before = await someCache(path, LIMITS);
    const first = await someStore(before, file);
    putPieces(first.store, before.pool, content, [0, 1]);
    await first.folder.close();
    const record = await readFile(`${path}/${file.infohash}/record.json`);
    const again = await someStore(await someCache(path, LIMITS), file);
    putPieces(again.store, before.pool, content, [2, 3, 9]);
    await again.folder.close();
    await writeFile(`${path}/${file.infohash}/record.json`, record);
    const crashed = await someStore(await someCache(path, LIMITS), file);
    assert.deepEqual(
      [0, 1, 2, 3, 4, 9].filter((piece) => crashed.store.held.has(piece)),
      [0, 1, 2, 3, 9],
    );
    const name = `${path}/${file.infohash}/0.pieces`;
    await writeFile(name, (await readFile(name)).subarray(0, 300 * 1024));
    const short = await someStore(await someCache(path, LIMITS), file);
    assert.deepEqual([...short.store.held.bytes.subarray(0, 1)], [0x80]);
  }));

test("DiskCache: the limit applies to all content; least recently read pieces are evicted first, needed pieces never", () =>
  inFolder(async (path) => {
    const { file, content } = someContent(80 * MIB, MIB);
    const parts = await someCache(path, { memory: 8 * MIB, disk: 40 * MIB });
    const { store, folder, dropped } = await someStore(parts, file);
    store.moveWindow(undefined, { start: 0, end: 2 * MIB });
    for (let piece = 0; piece < 80; piece++) {
      putPieces(store, parts.pool, content, [piece]);
      // The writer keeps up: this test checks the order, not the speed.
      for (let turns = 0; turns < 1000 && !folder.has(piece); turns++) {
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
    }
    await folder.close();
    const { activeBytes, inactiveBytes } = parts.cache.figures();
    assert.ok(activeBytes + inactiveBytes <= 40 * MIB);
    assert.ok(store.held.has(0) && store.held.has(1));
    assert.ok(dropped.includes(20));
    for (const piece of dropped) assert.equal(store.held.has(piece), false);
    const names = await readdir(`${path}/${file.infohash}`);
    assert.ok(names.includes("0.pieces"));
    assert.ok(names.filter((name) => name.endsWith(".pieces")).length <= 4);
  }));

test("DiskCache: content that is not open is evicted before open content", () =>
  inFolder(async (path) => {
    const old = someContent(16 * MIB, MIB);
    const parts = await someCache(path, { memory: 64 * MIB, disk: 24 * MIB });
    const first = await someStore(parts, old.file);
    putPieces(first.store, parts.pool, old.content, Array(16).keys());
    await first.folder.close();
    first.store.close();
    const young = someContent(16 * MIB, 512 * 1024);
    const second = await someStore(parts, young.file);
    putPieces(second.store, parts.pool, young.content, Array(32).keys());
    await second.folder.close();
    await parts.cache.close();
    assert.deepEqual(await readdir(path), [young.file.infohash]);
    assert.equal(second.folder.bytes, 16 * MIB);
  }));

test("DiskCache: a full disk logs one warning; pieces stay in memory, and writing is retried later", () =>
  inFolder(async (path) => {
    const { file, content } = someContent(8 * MIB, MIB);
    let isFull = true;
    const files: Files = {
      ...runtime.files,
      async open(name) {
        const opened = await runtime.files.open(name);
        const write = (at: number, ...parts: Uint8Array[]) =>
          isFull
            ? Promise.reject(new SluiceError("disk_full", "the disk is full"))
            : opened.write(at, ...parts);
        return { ...opened, write };
      },
    };
    const log = keepingLog();
    const parts = await someCache(path, LIMITS, { files, log });
    const { store, folder, dropped } = await someStore(parts, file);
    putPieces(store, parts.pool, content, [0, 1, 2]);
    while (log.warnings.length === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    assert.match(log.warnings[0]!, /playback continues from memory/);
    assert.deepEqual(store.peek(1), content.subarray(MIB, 2 * MIB));
    assert.equal(folder.bytes, 0);
    isFull = false;
    putPieces(store, parts.pool, content, [3]);
    assert.deepEqual(store.peek(3), content.subarray(3 * MIB, 4 * MIB));
    assert.deepEqual(dropped, []);
    await folder.close();
    assert.equal(log.warnings.length, 1);
  }));

test("DiskCache: unknown folders and files are ignored", () =>
  inFolder(async (path) => {
    const { file } = someContent(MIB, 256 * 1024);
    await runtime.files.replace(`${path}/mine/note.txt`, new Uint8Array(3));
    await runtime.files.replace(
      `${path}/${file.infohash}/record.json`,
      new TextEncoder().encode('{"version":1}'),
    );
    const { cache } = await someCache(path, LIMITS);
    assert.deepEqual(cache.figures(), { activeBytes: 0, inactiveBytes: 0 });
    assert.deepEqual(await readdir(path), ["mine"]);
    await rm(path, { recursive: true });
  }));
