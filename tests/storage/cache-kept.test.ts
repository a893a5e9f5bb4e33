import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { runtime } from "#runtime";
import { decodeRecord } from "../../src/storage/cache-record.ts";
import { SwarmTransfer } from "../../src/transfer/transfer.ts";
import type { AnnounceRequest } from "../../src/wire/tracker/announce.ts";
import { inFolder } from "../contract/folder.ts";
import { FakeClock } from "../engine/fake-clock.ts";
import { putPieces, someCache, someContent, someStore } from "../engine/parts.ts";
import { transferDependencies } from "../transfer/transfer-dependencies.ts";
import { GatedDisk, soon } from "./gated-disk.ts";

const MIB = 1024 * 1024;
const LIMITS = { memory: 64 * MIB, disk: 256 * MIB };

async function recordedPieces(folder: string): Promise<number> {
  const bytes = await readFile(`${folder}/record.json`).catch(() => new Uint8Array(0));
  return decodeRecord(bytes)?.pieces.count ?? 0;
}

test("DiskCache: pieces of a run that was killed in its first seconds are found by the next run", () =>
  inFolder(async (path) => {
    const { file, content } = someContent(4 * MIB, 256 * 1024);
    const killed = await someCache(path, LIMITS, { clock: new FakeClock() });
    const { store, folder } = await someStore(killed, file);
    putPieces(store, killed.pool, content, [0, 1, 2]);
    await soon(() => folder.has(2));
    putPieces(store, killed.pool, content, [9]);
    await soon(async () => folder.has(9) && (await recordedPieces(`${path}/${file.infohash}`)) > 0);
    const next = await someStore(await someCache(path, LIMITS), file);
    assert.deepEqual(
      [0, 1, 2, 3, 9].filter((piece) => next.store.held.has(piece)),
      [0, 1, 2, 9],
    );
    await Promise.all([folder.close(), next.folder.close()]);
  }));

test("CacheFolder: the record is written in time even if the disk is busy", () =>
  inFolder(async (path) => {
    const { file, content } = someContent(4 * MIB, 256 * 1024);
    const disk = new GatedDisk();
    const clock = new FakeClock();
    const cache = await someCache(path, LIMITS, { files: disk.files, clock });
    const { store, folder } = await someStore(cache, file);
    for (const piece of [0, 5]) {
      putPieces(store, cache.pool, content, [piece]);
      await soon(() => disk.waiting > 0);
      disk.write();
      await soon(() => folder.has(piece));
    }
    putPieces(store, cache.pool, content, [9]);
    await soon(() => disk.waiting > 0);
    await clock.advance(5_000);
    await soon(async () => (await recordedPieces(`${path}/${file.infohash}`)) === 2);
    disk.open();
    await folder.close();
    assert.equal(await recordedPieces(`${path}/${file.infohash}`), 3);
  }));

test("SwarmTransfer.stop: the cache is stored before trackers have replied to the stopped announce", () =>
  inFolder(async (path) => {
    const { file, content } = someContent(2 * MIB, 256 * 1024);
    const { pool, memory, cache } = await someCache(path, LIMITS);
    const before = await someStore({ pool, memory, cache }, file);
    putPieces(before.store, pool, content, [0, 1]);
    await before.folder.close();
    let answer = () => {};
    const answered = new Promise<void>((resolve) => {
      answer = resolve;
    });
    const asked: string[] = [];
    const announcer = {
      announce: async ({ event }: AnnounceRequest) => {
        asked.push(event);
        await answered;
        return { ok: false, reason: "late" } as const;
      },
      scrape: async () => undefined,
    };
    // The fake clock stands still, so the wait for the tracker does not time out.
    const still = { ...runtime, clock: new FakeClock() };
    const house = await transferDependencies(path, { runtime: still, pool, memory, cache, announcer });
    const trackers = [["http://tracker.invalid/announce"]];
    const named = { infohash: file.infohash, transportFile: file, trackers, peers: [] };
    const transfer = new SwarmTransfer(house, named, Promise.resolve(), () => {});
    await transfer.ready();
    assert.ok(cache.figures().activeBytes > 0);
    const stopped = transfer.stop();
    await soon(() => cache.figures().activeBytes === 0);
    assert.ok(asked.length > 0);
    answer();
    await stopped;
    assert.equal(cache.figures().inactiveBytes, 2 * 256 * 1024);
  }));
