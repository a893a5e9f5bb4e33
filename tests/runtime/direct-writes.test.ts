import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { files } from "../../src/runtime/files.ts";

const BLOCK = 4096;

function pattern(length: number, seed: number): Uint8Array<ArrayBuffer> {
  return Uint8Array.from({ length }, (_, i) => (i * 31 + (i >> 8) + seed) & 0xff);
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
