import assert from "node:assert/strict";
import { test } from "node:test";
import { parseV2TransportFile } from "../../src/wire/torrent/v2-metainfo.ts";
import { someBytes, someCache, someStore } from "../engine/parts.ts";
import { tempFolder } from "../parts/torrent-files.ts";
import { sha1, sha256 } from "../wire/make-torrent.ts";
import { makeV2Torrent } from "../wire/make-v2-torrent.ts";

const PIECE = 64 * 1024;
const FILES = {
  a: someBytes(PIECE + 100, 1),
  b: someBytes(300, 2),
  c: someBytes(2 * PIECE, 3),
  d: someBytes(7, 4),
};
const LIMITS = { memory: 1 << 20, disk: 1 << 24 };

test("DiskCache: version 2 pieces of different lengths are found at their offsets, also after a restart", async () => {
  const folder = await tempFolder("v2-cache");
  const file = parseV2TransportFile(
    makeV2Torrent({ name: "top", files: FILES, pieceLength: PIECE }).bytes,
    sha1,
    sha256,
  );
  const parts = Object.values(FILES).flatMap((bytes) =>
    Array.from({ length: Math.ceil(bytes.length / PIECE) }, (_, i) =>
      bytes.slice(i * PIECE, (i + 1) * PIECE),
    ),
  );
  try {
    const first = await someCache(folder.path, LIMITS);
    const { store, folder: cached } = await someStore(first, file);
    for (const [piece, bytes] of parts.entries()) {
      const buffer = first.pool.take(bytes.length, true)!;
      buffer.set(bytes);
      store.put(piece, buffer);
    }
    await cached.close();
    store.close();
    await first.cache.close();
    const second = await someCache(folder.path, LIMITS);
    const again = await someStore(second, file);
    for (const [piece, bytes] of parts.entries())
      assert.deepEqual(new Uint8Array((await again.store.load(piece))!), bytes, `piece ${piece}`);
    assert.deepEqual(again.dropped, []);
    await again.folder.close();
    again.store.close();
    await second.cache.close();
  } finally {
    await folder.remove();
  }
});
