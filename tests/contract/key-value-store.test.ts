import assert from "node:assert/strict";
import { appendFile, readdir, readFile, stat, truncate, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { openKeyValueFile } from "../../src/runtime/kv-file.ts";
import { inFolder } from "./folder.ts";
import { keyValueSuite } from "./key-value-suite.ts";

const warnings: string[] = [];
const warn = (message: string) => void warnings.push(message);
const open = (folder: string) => openKeyValueFile(`${folder}/sub/records`, { warn });

keyValueSuite("KeyValueFile", open);

test("KeyValueFile: a torn last line is dropped, at every length", () =>
  inFolder(async (folder) => {
    const store = await open(folder);
    await store.commit({ set: [["a", 1]] });
    const whole = (await stat(`${folder}/sub/records`)).size;
    await store.commit({ set: [["b", 2]], delete: ["a"] });
    await store.close();
    const bytes = await readFile(`${folder}/sub/records`);
    for (let length = whole; length < bytes.length; length++) {
      await writeFile(`${folder}/sub/records`, bytes.subarray(0, length));
      const torn = await open(folder);
      assert.equal(await torn.get("a"), 1);
      assert.equal(await torn.get("b"), undefined);
      await torn.commit({ set: [["c", 3]] });
      await torn.close();
      const again = await open(folder);
      assert.equal(await again.get("c"), 3);
      await again.close();
    }
  }));

test("KeyValueFile: damage in the middle is told, and kept beside", () =>
  inFolder(async (folder) => {
    const store = await open(folder);
    for (const key of ["a", "b", "c"]) await store.commit({ set: [[key, key]] });
    await store.close();
    const bytes = await readFile(`${folder}/sub/records`);
    bytes[Math.floor(bytes.length / 2)]! ^= 1;
    await writeFile(`${folder}/sub/records`, bytes);
    warnings.length = 0;
    const damaged = await open(folder);
    assert.equal(await damaged.get("a"), "a");
    assert.equal(await damaged.get("b"), undefined);
    assert.equal(warnings.length, 1);
    assert.ok((await readdir(`${folder}/sub`)).includes("records.damaged"));
    await damaged.close();
  }));

test("KeyValueFile: a journal of old values is rewritten", () =>
  inFolder(async (folder) => {
    const store = await open(folder);
    const text = "x".repeat(200_000);
    for (let i = 0; i < 12; i++) await store.commit({ set: [["a", text + i]] });
    assert.ok((await stat(`${folder}/sub/records`)).size < 1_300_000);
    await store.commit({ set: [["b", 1]] });
    await store.close();
    const again = await open(folder);
    assert.equal(await again.get("a"), `${text}11`);
    assert.equal(await again.get("b"), 1);
    await again.close();
  }));

test("KeyValueFile: a second opening is refused, a lock of a dead process is taken over", () =>
  inFolder(async (folder) => {
    const store = await open(folder);
    await assert.rejects(open(folder), { code: "bad_configuration" });
    await store.close();
    await appendFile(`${folder}/sub/records.lock`, "999999999");
    const again = await open(folder);
    await again.close();
    await truncate(`${folder}/sub/records`, 0);
  }));
