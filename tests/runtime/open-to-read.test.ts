import assert from "node:assert/strict";
import { mkdtemp, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { SluiceError } from "../../src/base/errors.ts";
import { openToRead } from "../../src/runtime/files.ts";

const code = (wanted: string) => (error: unknown) => error instanceof SluiceError && error.code === wanted;

test("openToRead: reads any range of a read-only file; refuses other paths", async () => {
  const folder = await mkdtemp(join(tmpdir(), "sluice-read-"));
  const path = join(folder, "film.ts");
  await writeFile(path, new Uint8Array([1, 2, 3, 4, 5]), { mode: 0o400 });
  const file = await openToRead(path);
  assert.equal(file.size, 5);
  assert.deepEqual(await file.read({ start: 1, end: 4 }), new Uint8Array([2, 3, 4]));
  await truncate(path, 0).catch(() => writeFile(path, ""));
  await assert.rejects(file.read({ start: 0, end: 2 }), code("broken_media"));
  await file.close();
  await assert.rejects(openToRead(join(folder, "none")), code("bad_parameter"));
  await assert.rejects(openToRead(folder), code("bad_parameter"));
  await rm(folder, { recursive: true });
});
