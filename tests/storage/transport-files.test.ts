import assert from "node:assert/strict";
import { test } from "node:test";
import { SluiceError } from "../../src/base/errors.ts";
import { SILENT_LOG } from "../../src/base/log.ts";
import type { Files } from "../../src/runtime/contract.ts";
import { ed25519Verifier } from "../../src/runtime/crypto.ts";
import type { KnownFile } from "../../src/storage/known-file.ts";
import { TransportFiles } from "../../src/storage/transport-files.ts";
import { makeLiveTransportFile, parseLiveTransportFile } from "../../src/wire/live/transport-file.ts";
import { parseTransportFile } from "../../src/wire/torrent/metainfo.ts";
import { KEY, RECIPE } from "../wire/live-vectors.ts";
import { makeTorrent, sha1, sha256 } from "../wire/make-torrent.ts";

const FOLDER = "/kept";
const SIGNED = live(makeLiveTransportFile(RECIPE, KEY.sign));
const NEWER = live(makeLiveTransportFile({ ...RECIPE, meta: { title: "newer" } }, KEY.sign));
const UNSIGNED = live(makeLiveTransportFile({ ...RECIPE, meta: {} }));

/** A disk in memory with the operations that these tests need. */
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

  open(limitBytes = 1e9, grown = () => {}) {
    return TransportFiles.open({
      limitBytes,
      grown,
      files: this.files,
      sha1,
      sha256,
      ed25519Verifier,
      log: SILENT_LOG,
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

test("TransportFiles: the sum of opened files is limited in bytes; uploaded files do not count", async () => {
  const disk = new MemoryDisk();
  const size = fileNumber(10).bytes.length;
  let grownCount = 0;
  const files = await disk.open(10 * size, () => grownCount++);
  await files.keep(vod(11));
  for (let i = 20; i < 50; i++) files.save(vod(i));
  await files.close();
  assert.deepEqual([disk.held.size, files.bytes], [11, 10 * size]);
  assert.ok(grownCount >= 10);
  assert.ok(files.infohashOf(fileNumber(49).fileHash) && files.infohashOf(fileNumber(11).fileHash));
  assert.equal((await disk.open()).bytes, 10 * size);
  // A file above the limit is not stored, and evicts none.
  const small = await disk.open(size - 1);
  small.save(vod(60));
  await small.close();
  assert.equal(disk.held.size, 11);
});

test("TransportFiles save: what waits for the disk is limited in bytes", async () => {
  const disk = new MemoryDisk();
  const files = await disk.open();
  const large = (i: number): KnownFile => {
    const { kind, file } = vod(i);
    return { kind, file: { ...file, bytes: new Uint8Array(10 * 1024 * 1024) } } as KnownFile;
  };
  for (let i = 0; i < 10; i++) files.save(large(i));
  await files.close();
  assert.equal(disk.held.size, 3);
  files.save(large(9));
  await files.close();
  assert.equal(disk.held.size, 4);
});

test("TransportFiles keep: stores a file permanently, over restarts, and opened files do not evict it", async () => {
  const disk = new MemoryDisk();
  const files = await disk.open();
  const film = fileNumber(0);
  files.save({ kind: "vod", file: film });
  await files.keep({ kind: "vod", file: film });
  await files.keep({ kind: "vod", file: film });
  assert.deepEqual([...disk.held.keys()], [`${FOLDER}/${film.infohash}-${film.fileHash}.kept.torrent`]);
  for (let i = 1; i <= 1100; i++) files.save(vod(i));
  await files.close();
  assert.equal(disk.held.size, 1001);
  const again = await disk.open();
  assert.equal(again.infohashOf(film.fileHash), film.infohash);
  assert.equal((await again.read(film.infohash))?.file.info.name, "n0");
  assert.equal(again.infohashes().length, 1001);
  // Of opened files, only the last thousand are kept.
  assert.equal(again.infohashOf(fileNumber(100).fileHash), undefined);
  assert.ok(again.infohashOf(fileNumber(101).fileHash));
});

test("TransportFiles keep: a disk failure rejects the failed call and no later one", async () => {
  const disk = new MemoryDisk();
  const files = await disk.open();
  disk.failure = new SluiceError("disk_full", "the disk is full");
  await assert.rejects(files.keep(vod(1)), { code: "disk_full" });
  disk.failure = undefined;
  assert.equal(files.infohashOf(fileNumber(1).fileHash), undefined);
  await files.keep(vod(2));
  assert.deepEqual(files.infohashes(), [fileNumber(2).infohash]);
});

function live(bytes: Uint8Array) {
  return { kind: "live", file: parseLiveTransportFile(bytes, sha1, ed25519Verifier) } as const;
}

test("TransportFiles: files of live streams are stored as well and found by both ids after a restart", async () => {
  const disk = new MemoryDisk();
  const files = await disk.open();
  files.save(SIGNED);
  files.save(vod(1));
  await files.close();
  const { infohash, fileHash } = SIGNED.file;
  assert.ok(disk.held.has(`${FOLDER}/${infohash}-${fileHash}.sluice`));
  const again = await disk.open();
  assert.equal(again.infohashOf(fileHash), infohash);
  assert.deepEqual(await again.read(infohash), SIGNED);
  assert.deepEqual([...again.infohashes()].sort(), [infohash, fileNumber(1).infohash].sort());
  await again.keep(SIGNED);
  assert.ok(disk.held.has(`${FOLDER}/${infohash}-${fileHash}.kept.sluice`));
  assert.equal(disk.held.size, 2);
});

test("TransportFiles: a signed file of a live stream replaces unsigned ones, and never the reverse", async () => {
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
  // The older id still returns its file.
  assert.equal(files.infohashOf(SIGNED.file.fileHash), infohash);
  // An uploaded file stays but is not preferred.
  await files.keep(UNSIGNED);
  assert.equal(files.infohashOf(UNSIGNED.file.fileHash), infohash);
  assert.deepEqual(await files.read(infohash), NEWER);
  const again = await disk.open();
  assert.deepEqual(await again.read(infohash), NEWER);
});

test("TransportFiles: a file on disk whose content does not match its name is ignored, for both kinds", async () => {
  const disk = new MemoryDisk();
  const { infohash, fileHash, bytes } = SIGNED.file;
  const broken = bytes.slice();
  broken[broken.length - 2]! ^= 1;
  const stranger = fileNumber(1);
  const found: Record<string, Uint8Array> = {
    [`${infohash}-${fileHash}.sluice`]: broken,
    // Each file under the name of the other kind.
    [`${infohash}-${"1".repeat(40)}.torrent`]: bytes,
    [`${stranger.infohash}-${stranger.fileHash}.sluice`]: stranger.bytes,
  };
  for (const [name, held] of Object.entries(found)) disk.held.set(`${FOLDER}/${name}`, held);
  const files = await disk.open();
  assert.equal(await files.read(infohash), undefined);
  assert.equal(await files.read(stranger.infohash), undefined);
  assert.deepEqual(files.infohashes(), []);
});

test("TransportFiles keep: stores at most ten thousand files", async () => {
  const disk = new MemoryDisk();
  const hex = (i: number) => i.toString(16).padStart(40, "0");
  for (let i = 0; i < 10_000; i++)
    disk.held.set(`${FOLDER}/${hex(i)}-${hex(i)}.kept.torrent`, new Uint8Array(0));
  const files = await disk.open();
  await assert.rejects(files.keep(vod(1)), { code: "too_many" });
});
