import assert from "node:assert/strict";
import { test } from "node:test";
import { runtime } from "#runtime";
import { inFolder } from "./folder.ts";

const { files } = runtime;
const bytes = (text: string) => new TextEncoder().encode(text);

test("Files.open makes folders, and writes and reads anywhere", () =>
  inFolder(async (folder) => {
    const file = await files.open(`${folder}/a/b/c`);
    await file.write(10, bytes("hello"));
    const into = new Uint8Array(5);
    await file.read(10, into);
    assert.deepEqual(into, bytes("hello"));
    await file.read(5, into);
    assert.deepEqual(into, new Uint8Array(5));
    await file.sync();
    await assert.rejects(file.read(11, into), /ends at/);
    await file.close();
    assert.equal((await files.stat(`${folder}/a/b/c`))?.size, 15);
  }));

test("Files.read gives the whole file, nothing where there is none, and refuses too much", () =>
  inFolder(async (folder) => {
    assert.equal(await files.read(`${folder}/none`, 10), undefined);
    await files.replace(`${folder}/x`, bytes("0123456789"));
    assert.deepEqual(await files.read(`${folder}/x`, 10), bytes("0123456789"));
    await assert.rejects(files.read(`${folder}/x`, 9), /at most 9/);
  }));

test("Files.parts gives a file part by part, to its end, and throws where there is none", () =>
  inFolder(async (folder) => {
    const whole = Uint8Array.from({ length: 200_000 }, (_, i) => i * 7);
    await files.replace(`${folder}/x`, whole);
    const parts: Uint8Array[] = [];
    for await (const part of files.parts(`${folder}/x`)) parts.push(part);
    assert.ok(parts.length > 1 && parts.every(({ length }) => length <= 64 * 1024));
    assert.deepEqual(new Uint8Array(Buffer.concat(parts)), whole);
    for await (const part of files.parts(`${folder}/x`)) {
      assert.ok(part.length > 0);
      break;
    }
    await assert.rejects(async () => {
      for await (const part of files.parts(`${folder}/none`)) assert.fail(`${part.length} bytes of nothing`);
    }, /ENOENT/);
  }));

test("Files.replace leaves one whole file", () =>
  inFolder(async (folder) => {
    await files.replace(`${folder}/deep/x`, bytes("a longer one"));
    await files.replace(`${folder}/deep/x`, bytes("short"));
    assert.deepEqual(await files.read(`${folder}/deep/x`, 100), bytes("short"));
    assert.deepEqual(await files.list(`${folder}/deep`), ["x"]);
  }));

test("Files.remove takes files and folders, and what is not there", () =>
  inFolder(async (folder) => {
    await files.replace(`${folder}/d/x`, bytes("1"));
    await files.remove(`${folder}/d`);
    await files.remove(`${folder}/d`);
    assert.deepEqual(await files.list(`${folder}/d`), []);
    assert.equal(await files.stat(`${folder}/d/x`), undefined);
  }));

test("Files.freeBytes tells of the disk that a path will be on", () =>
  inFolder(async (folder) => {
    assert.ok((await files.freeBytes(`${folder}/not/yet/there`))! > 0);
  }));

test("OpenFile.write says that the disk is full", async () => {
  const file = await files.open("/dev/full");
  await assert.rejects(file.write(0, bytes("x")), { name: "SluiceError", code: "disk_full" });
  await file.close();
});
