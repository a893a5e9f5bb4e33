import assert from "node:assert/strict";
import { mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import type { KeyValueStore } from "../../src/runtime/contract.ts";
import { checksumOf } from "../../src/runtime/kv-checksum.ts";
import { openStore } from "../../src/runtime/open-store.ts";
import { inFolder } from "../contract/folder.ts";

const opened = (folder: string, shared: boolean, warn: (message: string) => void = assert.fail) =>
  openStore({ folder, kind: "sqlite", shared, warn });

/** Opens the store, runs `work` and closes it; returns the warnings. */
async function during(folder: string, work: (store: KeyValueStore) => Promise<unknown>): Promise<string[]> {
  const warnings: string[] = [];
  const store = await opened(folder, false, (message) => warnings.push(message));
  try {
    await work(store);
  } finally {
    await store.close();
  }
  return warnings;
}

/** Changes the file directly. */
function tamper(folder: string, ...statements: string[]): void {
  const database = new DatabaseSync(`${folder}/records.db`);
  for (const sql of statements) database.exec(sql);
  database.close();
}

test("sqlite: refuses a second owner until the first has closed", () =>
  inFolder(async (folder) => {
    await during(folder, async () => {
      await assert.rejects(opened(folder, false), {
        code: "bad_configuration",
        message: /another Sluice uses/,
      });
    });
    assert.deepEqual(await during(folder, async () => {}), []);
  }));

test("sqlite: a tool and the owner read and write the same records", () =>
  inFolder(async (folder) => {
    await during(folder, async (owner) => {
      await owner.commit({ set: [["a", 1]] });
      const tool = await opened(folder, true);
      assert.equal(await tool.get("a"), 1);
      const both = [owner, tool].flatMap((store, i) =>
        Array.from({ length: 20 }, (_, j) => store.commit({ set: [[`${i}/${j}`, j]] })),
      );
      assert.ok((await Promise.all(both)).every((isDone) => isDone));
      await tool.close();
      for (const i of [0, 1]) assert.equal(await owner.get(`${i}/19`), 19);
    });
  }));

test("sqlite: a tool without an owner checks and repairs the store", () =>
  inFolder(async (folder) => {
    await during(folder, (store) => store.commit({ set: [["a", 1]] }));
    await rm(`${folder}/records.db`);
    const warnings: string[] = [];
    const tool = await opened(folder, true, (message) => warnings.push(message));
    assert.equal(await tool.get("a"), 1);
    await tool.close();
    assert.match(warnings.join(), /is missing\. Restored 0 records from it and 1 from the snapshot/);
  }));

test("sqlite: an owner waits for a running tool", () =>
  inFolder(async (folder) => {
    const tool = await opened(folder, true);
    const owner = opened(folder, false);
    await tool.commit({ set: [["a", 1]] });
    await tool.close();
    assert.equal(await (await owner).get("a"), 1);
    await (await owner).close();
  }));

test("sqlite: files are readable by the user only", () =>
  inFolder(async (folder) => {
    await during(folder, async (store) => {
      await store.commit({ set: [["a", 1]] });
      for (const name of await readdir(folder)) {
        assert.equal((await stat(`${folder}/${name}`)).mode & 0o077, 0, name);
      }
    });
    assert.equal((await stat(`${folder}/records.snapshot`)).mode & 0o077, 0);
  }));

test("sqlite: restores a damaged value from the snapshot and keeps newer records", () =>
  inFolder(async (folder) => {
    await during(folder, (store) =>
      store.commit({
        set: [
          ["a", "kept"],
          ["b", 1],
        ],
      }),
    );
    const snapshot = await readFile(`${folder}/records.snapshot`);
    await during(folder, (store) => store.commit({ set: [["new", 2]] }));
    await writeFile(`${folder}/records.snapshot`, snapshot);
    tamper(folder, `UPDATE record SET value = '"kepu"' WHERE key = 'a'`);
    const warnings = await during(folder, async (store) => {
      assert.equal(await store.get("a"), "kept");
      assert.equal(await store.get("new"), 2);
    });
    assert.equal(warnings.length, 1);
    assert.match(warnings[0]!, /1 records are damaged\. Restored 2 records from it and 1 from/);
    assert.deepEqual(await during(folder, async () => {}), []);
  }));

test("sqlite: refuses to return a record that is damaged while the store is open", () =>
  inFolder(async (folder) => {
    await during(folder, async (store) => {
      await store.commit({
        set: [
          ["a", 1],
          ["b", 1],
        ],
      });
      tamper(folder, "UPDATE record SET value = '2' WHERE key = 'a'");
      await assert.rejects(store.get("a"), /a is damaged on disk/);
      await assert.rejects(store.commit({ check: [["a", 2]], set: [["b", 2]] }), /a is damaged on disk/);
      assert.equal(await store.get("b"), 1);
      assert.equal(await store.commit({ set: [["a", 3]] }), true);
    });
    assert.deepEqual(await during(folder, async (store) => assert.equal(await store.get("a"), 3)), []);
  }));

test("sqlite: detects missing and outdated records", () =>
  inFolder(async (folder) => {
    const old = `'"old"', '${checksumOf("a", '"old"')}'`;
    for (const sql of [
      "DELETE FROM record WHERE key = 'a'",
      `UPDATE record SET (value, checksum) = (${old})`,
    ]) {
      await during(folder, (store) => store.commit({ set: [["a", "now"]], delete: ["b"] }));
      tamper(folder, sql);
      const warnings = await during(folder, async (store) => assert.equal(await store.get("a"), "now"));
      assert.match(warnings.join(), /Restored 0 records from it and 1 from the snapshot/);
    }
  }));

test("sqlite: detects a truncated write-ahead log", () =>
  inFolder(async (folder) => {
    const store = await opened(folder, false);
    await store.commit({ set: [["a", 1]] });
    const log = await readFile(`${folder}/records.db-wal`);
    await store.commit({ set: [["b", 1]] });
    const files = ["records.db", "records.tip"];
    const kept = await Promise.all(files.map((name) => readFile(`${folder}/${name}`)));
    await store.close();
    await rm(`${folder}/records.snapshot`);
    for (const [i, name] of files.entries()) await writeFile(`${folder}/${name}`, kept[i]!);
    await writeFile(`${folder}/records.db-wal`, log);
    const warnings = await during(folder, async (again) => assert.equal(await again.get("a"), 1));
    assert.match(warnings.join(), /has lost the last 1 changes/);
  }));

test("sqlite: warns of an unreadable snapshot and writes a new one", () =>
  inFolder(async (folder) => {
    await during(folder, (store) => store.commit({ set: [["a", 1]] }));
    await rm(`${folder}/records.snapshot`);
    await mkdir(`${folder}/records.snapshot`);
    const warnings = await during(folder, async (store) => {
      assert.equal(await store.get("a"), 1);
      await rm(`${folder}/records.snapshot`, { recursive: true });
    });
    assert.match(warnings.join(), /records\.snapshot cannot be read/);
    assert.deepEqual(await during(folder, async () => {}), []);
  }));

test("sqlite: keeps three copies of damaged files", () =>
  inFolder(async (folder) => {
    await during(folder, (store) => store.commit({ set: [["a", 1]] }));
    for (let i = 0; i < 5; i++) {
      await writeFile(`${folder}/records.db`, "no database");
      assert.equal((await during(folder, async (store) => assert.equal(await store.get("a"), 1))).length, 1);
    }
    const copies = (await readdir(folder)).filter((name) => name.endsWith(".old")).sort();
    assert.deepEqual(copies, ["records.3.old", "records.4.old", "records.5.old"]);
  }));

test("sqlite: refuses records of a newer version without a change", () =>
  inFolder(async (folder) => {
    await during(folder, (store) => store.commit({ set: [["a", 1]] }));
    const state = JSON.stringify({ version: 99, sequence: 9, count: 1, digest: "0".repeat(16) });
    tamper(
      folder,
      `UPDATE state SET (value, checksum) = ('${state}', '${checksumOf("state", state)}')`,
      "PRAGMA user_version = 99",
    );
    const before = await readFile(`${folder}/records.db`);
    await assert.rejects(opened(folder, false), { code: "bad_configuration", message: /newer Sluice/ });
    assert.deepEqual(await readFile(`${folder}/records.db`), before);
  }));
