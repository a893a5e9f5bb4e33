import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { test } from "node:test";
import { runtime } from "#runtime";
import { SluiceError } from "../../src/base/errors.ts";
import { run } from "../../src/cli/run.ts";
import { inFolder } from "../contract/folder.ts";
import { putPieces, someCache, someContent, someStore } from "../engine/parts.ts";
import { contextOf } from "./run-in-process.ts";

const FULL = new SluiceError("disk_full", "the disk is full");

/** Runs `serve` with a database that cannot be opened, for the given reasons in turn. */
async function serveWith(dataDir: string, failures: Error[]) {
  const { context, written } = contextOf(["serve", "--http-port", "0", "--p2p-port", "0"], { dataDir });
  let tries = 0;
  const openStore = async () => {
    throw failures[tries++]!;
  };
  const code = await run({ ...context, runtime: { ...runtime, openStore } });
  return { code, tries, ...written };
}

test("serve on a full disk: removes cached content and tries again", () =>
  inFolder(async (path) => {
    const { file, content } = someContent(2 * 1024 * 1024, 256 * 1024);
    const before = await someCache(`${path}/cache`, { memory: 1 << 26, disk: 1 << 28 });
    const { store, folder } = await someStore(before, file);
    putPieces(store, before.pool, content, [0, 1, 2]);
    await folder.close();
    await before.cache.close();
    assert.deepEqual(await readdir(`${path}/cache`), [file.infohash]);
    const { code, tries, err } = await serveWith(path, [
      FULL,
      new SluiceError("bad_configuration", "tried again"),
    ]);
    assert.deepEqual([code, tries], [2, 2]);
    assert.match(err, /the disk was full: removed cached content to start/);
    assert.match(err, /^sluice: tried again$/m);
    assert.deepEqual(await readdir(`${path}/cache`), []);
  }));

test("serve on a full disk without a cache: one sentence, no second attempt", () =>
  inFolder(async (path) => {
    const { code, tries, err } = await serveWith(path, [FULL]);
    assert.deepEqual([code, tries], [1, 1]);
    assert.equal(
      err,
      `sluice: the disk of ${path} is full. Free some space, or choose another data folder with --data-dir.\n`,
    );
  }));
