import assert from "node:assert/strict";
import { test } from "node:test";
import { SluiceError } from "../../src/base/errors.ts";
import type { KnownFile } from "../../src/engine/known-file.ts";
import { TransportFiles } from "../../src/engine/transport-files.ts";
import type { Files } from "../../src/runtime/contract.ts";
import { ed25519Verifier } from "../../src/runtime/crypto.ts";
import { makeLiveTransportFile, parseLiveTransportFile } from "../../src/wire/live-transport.ts";
import { parseTransportFile } from "../../src/wire/metainfo.ts";
import { KEY, RECIPE } from "../wire/live-vectors.ts";
import { makeTorrent, sha1, sha256 } from "../wire/make-torrent.ts";
import { SILENT } from "./fake-house.ts";

const FOLDER = "/kept";
const SIGNED = live(makeLiveTransportFile(RECIPE, KEY.sign));
const NEWER = live(makeLiveTransportFile({ ...RECIPE, meta: { title: "newer" } }, KEY.sign));
const UNSIGNED = live(makeLiveTransportFile({ ...RECIPE, meta: {} }));

/** A disk in memory, of what is needed here. */
class MemoryDisk {
  readonly held = new Map<string, Uint8Array>();
  failure: Error | undefined;
  readonly files = {
    list: async () => [...this.held.keys()].map((path) => path.slice(FOLDER.length + 1)),
    stat: async (path: string) => ({ size: this.held.get(path)!.length, modifiedMs: 0 }),
    read: async (path: string) => this.held.get(path),
    replace: async (path: string, bytes: Uint8Array) => {
      if (this.failure) throw this.failure;
      this.held.set(path, bytes.slice());
    },
    remove: async (path: string) => void this.held.delete(path),
  } as unknown as Files;

  open() {
    return TransportFiles.open({
      files: this.files,
      sha1,
      sha256,
      ed25519Verifier,
      log: SILENT,
      folder: FOLDER,
    });
  }
}

function fileNumber(i: number) {
  const made = makeTorrent({
    name: `n${i}`,
    pieceLength: 16384,
    files: [{ path: `n${i}`, bytes: new Uint8Array(1) }],
  });
  return parseTransportFile(made.bytes, sha1);
}

const vod = (i: number): KnownFile => ({ kind: "vod", file: fileNumber(i) });

test("TransportFiles keep: for good, over restarts, and never evicted by what is opened", async () => {
  const disk = new MemoryDisk();
  const files = await disk.open();
  const film = fileNumber(0);
  files.save({ kind: "vod", file: film });
  await files.keep({ kind: "vod", file: film });
  await files.keep({ kind: "vod", file: film });
  assert.deepEqual([...disk.held.keys()], [`${FOLDER}/${film.infohash}-${film.contentId}.kept.torrent`]);
  for (let i = 1; i <= 1100; i++) files.save(vod(i));
  await files.close();
  assert.equal(disk.held.size, 1001);
  const again = await disk.open();
  assert.equal(again.infohashOf(film.contentId), film.infohash);
  assert.equal((await again.read(film.infohash))?.file.info.name, "n0");
  assert.equal(again.infohashes().length, 1001);
  // What was opened earlier than the last thousand is gone.
  assert.equal(again.infohashOf(fileNumber(100).contentId), undefined);
  assert.ok(again.infohashOf(fileNumber(101).contentId));
});

test("TransportFiles keep: a disk that fails is told to who asked, and to nobody behind them", async () => {
  const disk = new MemoryDisk();
  const files = await disk.open();
  disk.failure = new SluiceError("disk_full", "the disk is full");
  await assert.rejects(files.keep(vod(1)), { code: "disk_full" });
  disk.failure = undefined;
  assert.equal(files.infohashOf(fileNumber(1).contentId), undefined);
  await files.keep(vod(2));
  assert.deepEqual(files.infohashes(), [fileNumber(2).infohash]);
});

function live(bytes: Uint8Array) {
  return { kind: "live", file: parseLiveTransportFile(bytes, sha1, ed25519Verifier) } as const;
}

test("TransportFiles: those of live streams are kept beside, and found by both ids over restarts", async () => {
  const disk = new MemoryDisk();
  const files = await disk.open();
  files.save(SIGNED);
  files.save(vod(1));
  await files.close();
  const { infohash, contentId } = SIGNED.file;
  assert.ok(disk.held.has(`${FOLDER}/${infohash}-${contentId}.sluice`));
  const again = await disk.open();
  assert.equal(again.infohashOf(contentId), infohash);
  assert.deepEqual(await again.read(infohash), SIGNED);
  assert.deepEqual([...again.infohashes()].sort(), [infohash, fileNumber(1).infohash].sort());
  await again.keep(SIGNED);
  assert.ok(disk.held.has(`${FOLDER}/${infohash}-${contentId}.kept.sluice`));
  assert.equal(disk.held.size, 2);
});

test("TransportFiles: of a live stream a signed file replaces unsigned ones, and never the other way round", async () => {
  const disk = new MemoryDisk();
  const files = await disk.open();
  const { infohash } = SIGNED.file;
  files.save(UNSIGNED);
  assert.deepEqual(await files.read(infohash), UNSIGNED);
  files.save(SIGNED);
  await files.close();
  assert.equal(disk.held.size, 1);
  files.save(UNSIGNED);
  await files.close();
  assert.equal(disk.held.size, 1);
  assert.deepEqual(await files.read(infohash), SIGNED);
  files.save(NEWER);
  assert.deepEqual(await files.read(infohash), NEWER);
  // Whoever holds the older id still gets what it names.
  assert.equal(files.infohashOf(SIGNED.file.contentId), infohash);
  // What somebody has uploaded stays, but is not preferred.
  await files.keep(UNSIGNED);
  assert.equal(files.infohashOf(UNSIGNED.file.contentId), infohash);
  assert.deepEqual(await files.read(infohash), NEWER);
  const again = await disk.open();
  assert.deepEqual(await again.read(infohash), NEWER);
});

test("TransportFiles: a file on disk that is not what its name says is none, of either kind", async () => {
  const disk = new MemoryDisk();
  const { infohash, contentId, bytes } = SIGNED.file;
  const broken = bytes.slice();
  broken[broken.length - 2]! ^= 1;
  const stranger = fileNumber(1);
  const found: Record<string, Uint8Array> = {
    [`${infohash}-${contentId}.sluice`]: broken,
    // Each as the other kind.
    [`${infohash}-${"1".repeat(40)}.torrent`]: bytes,
    [`${stranger.infohash}-${stranger.contentId}.sluice`]: stranger.bytes,
  };
  for (const [name, held] of Object.entries(found)) disk.held.set(`${FOLDER}/${name}`, held);
  const files = await disk.open();
  assert.equal(await files.read(infohash), undefined);
  assert.equal(await files.read(stranger.infohash), undefined);
  assert.deepEqual(files.infohashes(), []);
});

test("TransportFiles keep: ten thousand, and not one more", async () => {
  const disk = new MemoryDisk();
  const hex = (i: number) => i.toString(16).padStart(40, "0");
  for (let i = 0; i < 10_000; i++)
    disk.held.set(`${FOLDER}/${hex(i)}-${hex(i)}.kept.torrent`, new Uint8Array(0));
  const files = await disk.open();
  await assert.rejects(files.keep(vod(1)), { code: "too_many" });
});
