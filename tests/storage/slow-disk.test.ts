import assert from "node:assert/strict";
import { test } from "node:test";
import { inFolder } from "../contract/folder.ts";
import { FakeClock } from "../engine/fake-clock.ts";
import { keepingLog, someCache, someContent, someStore } from "../engine/parts.ts";
import { GatedDisk, soon } from "./gated-disk.ts";

const MIB = 1024 * 1024;
const PIECE = 256 * 1024;

/** A cache with 4 MiB of memory over a gated disk, and a store of content of `bytes`. */
async function gatedCache(path: string, bytes: number) {
  const { file, content } = someContent(bytes, PIECE);
  const disk = new GatedDisk();
  const clock = new FakeClock();
  const reports: string[] = [];
  const log = keepingLog();
  log.info = (message: string) => void reports.push(message);
  const options = { files: disk.files, clock, log };
  const cache = await someCache(path, { memory: 4 * MIB, disk: 256 * MIB }, options);
  return { file, content, disk, clock, reports, cache, parts: await someStore(cache, file) };
}

/** Puts all pieces in order, as a swarm does. Without memory it waits for the notification. */
async function fetchAll(
  { pool }: Awaited<ReturnType<typeof someCache>>,
  { store }: Awaited<ReturnType<typeof someStore>>,
  content: Uint8Array,
  noMemory: () => Promise<void> | void,
): Promise<void> {
  let isTold = false;
  const buffers = pool.forTransfer(() => {
    isTold = true;
  });
  for (let piece = 0; piece < store.layout.pieceCount; ) {
    const length = store.pieceBytes(piece);
    const bytes = buffers.take(length);
    if (bytes === undefined) {
      await noMemory();
      await soon(() => isTold);
      isTold = false;
      continue;
    }
    bytes.set(content.subarray(piece * PIECE, piece * PIECE + length));
    buffers.filled();
    store.put(piece++, bytes);
  }
}

test("DiskCache: waits for a slow disk, which stores everything in the end", () =>
  inFolder(async (path) => {
    const { content, disk, cache, parts } = await gatedCache(path, 64 * MIB);
    let waits = 0;
    await fetchAll(cache, parts, content, async () => {
      waits++;
      assert.ok(cache.pool.inUseBytes <= (4 + 8) * MIB);
      await soon(() => disk.waiting > 0);
      disk.write();
    });
    assert.ok(waits > 8, `${waits}`);
    disk.open();
    await parts.folder.close();
    assert.deepEqual(parts.dropped, []);
    assert.equal(parts.folder.bytes, content.length);
  }));

test("DiskCache: waits a second for a stalled disk; then playback continues, and lost pieces are fetched again", () =>
  inFolder(async (path) => {
    const { file, content, disk, clock, reports, cache, parts } = await gatedCache(path, 32 * MIB);
    await fetchAll(cache, parts, content, () => clock.advance(1000));
    assert.ok(parts.dropped.length > 0);
    assert.equal(parts.store.held.count + parts.dropped.length, file.info.pieceCount);
    disk.open();
    await parts.folder.close();
    for (const piece of parts.dropped) assert.equal(parts.folder.has(piece), false);
    assert.equal(reports.filter((line) => line.includes("too slow")).length, 1);
    // Pieces that were in memory when the disk recovered are stored.
    assert.ok(parts.folder.bytes >= 4 * MIB);
  }));

test("DiskCache: does not evict unwritten pieces before that second is over", () =>
  inFolder(async (path) => {
    const { content, disk, clock, cache, parts } = await gatedCache(path, 32 * MIB);
    const stop = new Error("enough");
    const noMemory = async () => {
      await clock.advance(999);
      throw stop;
    };
    await assert.rejects(fetchAll(cache, parts, content, noMemory), stop);
    assert.deepEqual(parts.dropped, []);
    disk.open();
    await parts.folder.close();
    assert.equal(parts.folder.bytes, parts.store.held.count * PIECE);
  }));

test("DiskCache: a segment evicted during a write is not considered stored", () =>
  inFolder(async (path) => {
    const one = someContent(4 * MIB, MIB);
    const other = someContent(3 * MIB, 512 * 1024);
    const disk = new GatedDisk();
    const cache = await someCache(path, { memory: 64 * MIB, disk: 4 * MIB }, { files: disk.files });
    const first = await someStore(cache, one.file);
    const second = await someStore(cache, other.file);
    const put = ({ store }: typeof first, { content, file }: typeof one, piece: number) => {
      const bytes = cache.pool.takeAnyway(store.pieceBytes(piece));
      const at = piece * file.info.pieceLength;
      bytes.set(content.subarray(at, at + bytes.length));
      store.put(piece, bytes);
    };
    put(first, one, 0);
    await soon(() => disk.waiting === 1);
    disk.write();
    await soon(() => first.folder.has(0));
    put(first, one, 1);
    await soon(() => disk.waiting === 1);
    for (let piece = 0; piece < 6; piece++) put(second, other, piece);
    await soon(() => disk.waiting === 2);
    // The rest of the disk is too small: the first segment is evicted while a write into it is pending.
    disk.open();
    await soon(() => second.folder.bytes === 3 * MIB);
    await Promise.all([first.folder.close(), second.folder.close()]);
    const { activeBytes, inactiveBytes } = cache.cache.figures();
    assert.ok(activeBytes + inactiveBytes <= 4 * MIB);
    assert.equal(activeBytes + inactiveBytes, first.folder.bytes + second.folder.bytes);
    const again = await someStore(await someCache(path, { memory: 64 * MIB, disk: 4 * MIB }), one.file);
    for (const piece of [0, 1])
      assert.equal(first.folder.has(piece) && !again.folder.has(piece), false, `piece ${piece}`);
  }));
