import assert from "node:assert/strict";
import { readdir, stat, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { tryLock } from "../../src/runtime/kv-lock.ts";
import { tempFolder } from "../parts/torrent-files.ts";

test("tryLock: exclusive, writes nothing, and replaces a damaged lock file", async () => {
  const scratch = await tempFolder("lock");
  try {
    const path = scratch.file("lock");
    const release = await tryLock(path);
    assert.ok(release);
    assert.equal(await tryLock(path), undefined);
    // It must work on a full disk.
    assert.deepEqual([await readdir(scratch.path), (await stat(path)).size], [["lock"], 0]);
    release();
    await writeFile(path, "no database ".repeat(1000));
    const again = await tryLock(path);
    assert.ok(again);
    again();
  } finally {
    await scratch.remove();
  }
});
