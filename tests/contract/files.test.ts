import assert from "node:assert/strict";
import { test } from "node:test";
import { runtime } from "#runtime";
import { inFolder } from "./folder.ts";

const { files } = runtime;
const bytes = (text: string) => new TextEncoder().encode(text);

test("Files.open: creates folders; reads and writes at any offset", () =>
  inFolder(async (folder) => {
    const file = await files.open(`${folder}/a/b/c`);
    await file.write(10, bytes("hello"));
    const into = new Uint8Array(5);
    await file.read(10, into);
    assert.deepEqual(into, bytes("hello"));
    await file.read(5, into);
    assert.deepEqual(into, new Uint8Array(5));
    await file.sync();
    await assert.rejects(file.read(11, into), /has 15 bytes, expected 16/);
    await file.close();
    assert.equal((await files.stat(`${folder}/a/b/c`))?.size, 15);
  }));

test("Files.read: the whole file, undefined if missing, and the limit", () =>
  inFolder(async (folder) => {
    assert.equal(await files.read(`${folder}/none`, 10), undefined);
    await files.replace(`${folder}/x`, bytes("0123456789"));
    assert.deepEqual(await files.read(`${folder}/x`, 10), bytes("0123456789"));
    await assert.rejects(files.read(`${folder}/x`, 9), /at most 9/);
  }));

test("Files.parts: reads in chunks; throws if the file is missing", () =>
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

test("Files.replace: leaves exactly one complete file", () =>
  inFolder(async (folder) => {
    await files.replace(`${folder}/deep/x`, bytes("a longer one"));
    await files.replace(`${folder}/deep/x`, bytes("short"));
    assert.deepEqual(await files.read(`${folder}/deep/x`, 100), bytes("short"));
    assert.deepEqual(await files.list(`${folder}/deep`), ["x"]);
  }));

test("Files.remove: removes files and folders; ignores missing ones", () =>
  inFolder(async (folder) => {
    await files.replace(`${folder}/d/x`, bytes("1"));
    await files.remove(`${folder}/d`);
    await files.remove(`${folder}/d`);
    assert.deepEqual(await files.list(`${folder}/d`), []);
    assert.equal(await files.stat(`${folder}/d/x`), undefined);
  }));

test("Files.freeBytes: the disk of a path that does not exist yet", () =>
  inFolder(async (folder) => {
    assert.ok((await files.freeBytes(`${folder}/not/yet/there`))! > 0);
  }));

test("OpenFile.write: rejects with disk_full on a full disk", async () => {
  const file = await files.open("/dev/full");
  await assert.rejects(file.write(0, bytes("x")), { name: "SluiceError", code: "disk_full" });
  await file.close();
});
