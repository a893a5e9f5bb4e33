import assert from "node:assert/strict";
import { test } from "node:test";
import { randomBelow, seededRandom } from "../../src/base/random.ts";
import { BlockCache } from "../../src/remux/block-cache.ts";

const SIZE = 1_000_000;
const BYTES = Uint8Array.from({ length: SIZE }, (_, i) => (i * 31 + (i >> 8)) & 255);

function counted() {
  const reads: number[] = [];
  return {
    reads,
    size: SIZE,
    read: async ({ start, end }: { start: number; end: number }) => {
      reads.push(end - start);
      return BYTES.slice(start, end);
    },
  };
}

test("BlockCache.read: any ranges, in any order and side by side, are the file's", async () => {
  const source = counted();
  const cache = new BlockCache(source, 256 * 1024);
  const random = seededRandom(3);
  const one = async () => {
    const start = randomBelow(random, SIZE - 1);
    const end = Math.min(SIZE, start + 1 + randomBelow(random, i % 3 === 0 ? 300_000 : 500));
    assert.deepEqual(await cache.read(start, end), BYTES.slice(start, end));
  };
  let i = 0;
  for (; i < 60; i++) await Promise.all([one(), one(), one()]);
});

test("BlockCache.read: many small reads are few large ones, and what is held comes at once", async () => {
  const source = counted();
  const cache = new BlockCache(source);
  for (let at = 0; at < 200_000; at += 100) await cache.read(at, at + 100);
  assert.deepEqual(source.reads, [65536, 65536, 65536, 65536]);
  assert.ok(cache.read(1000, 150_000) instanceof Uint8Array);
});

test("BlockCache.read: one read that fails leaves nothing behind", async () => {
  let fails = true;
  const cache = new BlockCache({
    size: SIZE,
    read: async ({ start, end }) => {
      if (fails) throw new Error("gone");
      return BYTES.slice(start, end);
    },
  });
  await assert.rejects(async () => cache.read(0, 10), /gone/);
  fails = false;
  assert.deepEqual(await cache.read(0, 10), BYTES.slice(0, 10));
});
