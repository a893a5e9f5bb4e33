import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { DirectDisk } from "../../src/runtime/direct-writes.ts";
import { files } from "../../src/runtime/files.ts";

const BLOCK = 4096;

function pattern(length: number, seed: number): Uint8Array<ArrayBuffer> {
  return Uint8Array.from({ length }, (_, i) => (i * 31 + (i >> 8) + seed) & 0xff);
}

/** The sum of `lengths`, rounded up to whole blocks. */
function roundUp(lengths: readonly number[]): number {
  return Math.ceil(lengths.reduce((sum, length) => sum + length, 0) / BLOCK) * BLOCK;
}

test("Files.open with bypassesPageCache: every write can be read back, whether aligned, short, long or overlapping", async () => {
  const folder = await mkdtemp(join(tmpdir(), "sluice-direct-"));
  const file = await files.open(join(folder, "a", "0.seg"), { bypassesPageCache: true });
  const expected = new Uint8Array(3 * 1024 * 1024 + 3 * BLOCK + 7);
  const put = async (at: number, bytes: Uint8Array<ArrayBuffer>) => {
    await file.write(at, bytes);
    expected.set(bytes, at);
  };
  // Longer than the aligned copy, whose last part is shorter; memory that no runtime aligns; then what a last piece looks like.
  await put(0, pattern(1024 * 1024 + 16 * BLOCK, 1));
  await put(2 * 1024 * 1024, pattern(1024 * 1024 + 1, 2).subarray(1) as Uint8Array<ArrayBuffer>);
  await put(1024 * 1024, pattern(64 * BLOCK, 3));
  await put(3 * 1024 * 1024, pattern(3 * BLOCK + 7, 4));
  // Direct over buffered, and buffered over direct.
  await put(3 * 1024 * 1024 - 16 * BLOCK, pattern(16 * BLOCK, 5));
  await put(5, pattern(100_000, 6));
  const read = new Uint8Array(expected.length);
  await file.read(0, read);
  assert.ok(Buffer.from(read).equals(expected));
  await file.close();
  await rm(folder, { recursive: true });
});

test("OpenFile.write: several parts are written one after another, whatever their lengths", async () => {
  const folder = await mkdtemp(join(tmpdir(), "sluice-direct-"));
  const file = await files.open(join(folder, "0"), { bypassesPageCache: true });
  const lengths = [
    [64 * BLOCK, 64 * BLOCK, 64 * BLOCK], // directly from the parts
    [256 * BLOCK, 64 * BLOCK + 1, 64 * BLOCK - 1], // as a whole a multiple of a block
    Array.from({ length: 200 }, () => 2 * BLOCK), // copies: longer than the aligned buffer
    [64 * BLOCK, 64 * BLOCK, 5_000], // the end of a file
    [64 * BLOCK, 0, 3],
  ];
  let at = 0;
  const expected: Uint8Array[] = [];
  for (const [seed, each] of lengths.entries()) {
    const parts = each.map((length, i) => pattern(length, seed * 1000 + i * 7));
    at = Math.ceil(at / BLOCK) * BLOCK;
    await file.write(at, ...parts);
    expected.push(Buffer.concat([...parts, new Uint8Array(BLOCK)]).subarray(0, roundUp(each)));
    at += each.reduce((sum, length) => sum + length, 0);
  }
  const whole = Buffer.concat(expected).subarray(0, at);
  const read = new Uint8Array(whole.length);
  await file.read(0, read);
  assert.ok(Buffer.from(read).equals(whole));
  await file.close();
  await rm(folder, { recursive: true });
});

test("DirectDisk: a pause of 400 ms changes nothing; at under 20 MB/s the page cache takes 64 writes", async () => {
  let now = 0;
  const disk = new DirectDisk(() => now);
  const takes = (ms: number) =>
    disk.write(1_000_000, async () => {
      now += ms;
      return true;
    });
  for (const ms of [1, 400, 1, 40]) assert.equal(await takes(ms), true);
  // The pause was 350 ms too long; each of these makes up for 45 ms of it.
  for (let i = 0; i < 10; i++) await takes(5);
  let direct = 0;
  while (await takes(100)) direct++;
  assert.equal(direct, 11);
  for (let i = 1; i < 64; i++) assert.equal(await takes(1), false);
  assert.equal(await takes(1), true);
});

test("Files.open with bypassesPageCache: parallel writes to two files do not mix", async () => {
  const folder = await mkdtemp(join(tmpdir(), "sluice-direct-"));
  const all = await Promise.all(
    ["0", "1"].map((name) => files.open(join(folder, name), { bypassesPageCache: true })),
  );
  const bytes = all.map((_, i) => pattern(512 * BLOCK, i));
  await Promise.all(
    all.flatMap((file, i) => [0, 1].map((half) => file.write(half * bytes[i]!.length, bytes[i]!))),
  );
  for (const [i, file] of all.entries()) {
    const read = new Uint8Array(2 * bytes[i]!.length);
    await file.read(0, read);
    assert.ok(Buffer.from(read).equals(Buffer.concat([bytes[i]!, bytes[i]!])));
    await file.close();
  }
  await rm(folder, { recursive: true });
});
