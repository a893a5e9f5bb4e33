import assert from "node:assert/strict";
import { test } from "node:test";
import { randomBelow } from "../../src/base/random.ts";
import { BlockCache } from "../../src/remux/block-cache.ts";
import { seededRandom } from "../seeded-random.ts";

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

test("BlockCache.read: returns the bytes of the file for any ranges, in any order and in parallel", async () => {
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

test("BlockCache.read: combines many small reads into few large ones, and returns cached bytes without a promise", async () => {
  const source = counted();
  const cache = new BlockCache(source);
  for (let at = 0; at < 200_000; at += 100) await cache.read(at, at + 100);
  assert.deepEqual(source.reads, [65536, 65536, 65536, 65536]);
  assert.ok(cache.read(1000, 150_000) instanceof Uint8Array);
});

test("BlockCache.read: a failed read leaves nothing in the cache", async () => {
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
