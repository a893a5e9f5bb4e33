import assert from "node:assert/strict";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { runtime } from "#runtime";
import { openLiveFolder } from "../../src/live/window/live-folder.ts";
import { keepingLog } from "../engine/parts.ts";
import { tempFolder } from "../parts/torrent-files.ts";

test("openLiveFolder: one folder per process; removes stale ones, and none in use", async () => {
  const scratch = await tempFolder("live-folder");
  const parent = scratch.file("live");
  try {
    const log = keepingLog();
    const first = await openLiveFolder(parent, runtime, log);
    await mkdir(`${first!.path}/stream`, { recursive: true });
    await writeFile(`${first!.path}/stream/1.ts`, "media");
    // Left by a killed process: with a lock file, and without one.
    await mkdir(`${parent}/00c0ffee`);
    await writeFile(`${parent}/00c0ffee.lock`, "");
    await mkdir(`${parent}/746134b466f588338aabd1e6a427e9563450b78c`);

    const second = await openLiveFolder(parent, runtime, log);
    assert.notEqual(second!.path, first!.path);
    assert.deepEqual(await readdir(`${first!.path}/stream`), ["1.ts"]);
    const left = (await readdir(parent)).map((name) => `${parent}/${name.slice(0, 8)}`);
    assert.deepEqual(
      left.filter((path) => path !== first!.path && path !== second!.path),
      [],
    );

    await first!.close();
    await second!.close();
    assert.deepEqual(await readdir(parent), []);
    assert.deepEqual(log.warnings, []);
  } finally {
    await scratch.remove();
  }
});

test("openLiveFolder: warns and resolves with undefined if it cannot write", async () => {
  const scratch = await tempFolder("live-folder");
  try {
    await writeFile(scratch.file("file"), "");
    const log = keepingLog();
    assert.equal(await openLiveFolder(scratch.file("file/live"), runtime, log), undefined);
    assert.equal(log.warnings.length, 1);
  } finally {
    await scratch.remove();
  }
});

test("openLiveFolder: gives up on a disk without locks, with a warning and no files left", async () => {
  const scratch = await tempFolder("live-folder");
  const parent = scratch.file("live");
  try {
    const log = keepingLog();
    const lockless = { ...runtime, lock: async () => undefined };
    assert.equal(await openLiveFolder(parent, lockless, log), undefined);
    assert.equal(log.warnings.length, 1);
    assert.deepEqual(await readdir(parent), []);
  } finally {
    await scratch.remove();
  }
});
