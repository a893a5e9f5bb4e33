import assert from "node:assert/strict";
import { test } from "node:test";
import type { KeyValueStore } from "../../src/runtime/contract.ts";
import { inFolder } from "./folder.ts";

async function entries(store: KeyValueStore, prefix: string): Promise<unknown[]> {
  const all: unknown[] = [];
  for await (const entry of store.list(prefix)) all.push(entry);
  return all;
}

/** What every KeyValueStore must do. `open` opens the store that lives in a folder, again and again. */
export function keyValueSuite(name: string, open: (folder: string) => Promise<KeyValueStore>): void {
  test(`${name}: get gives what commit set, after reopening too`, () =>
    inFolder(async (folder) => {
      const store = await open(folder);
      assert.equal(await store.get("a"), undefined);
      assert.equal(await store.commit({ set: [["a", { n: 1, list: ["é\n", null] }]] }), true);
      await store.close();
      const again = await open(folder);
      assert.deepEqual(await again.get("a"), { n: 1, list: ["é\n", null] });
      await again.close();
    }));

  test(`${name}: list gives the prefix in key order`, () =>
    inFolder(async (folder) => {
      const store = await open(folder);
      await store.commit({
        set: [
          ["p/b", 2],
          ["p/a", 1],
          ["q/a", 3],
          ["p", 0],
        ],
      });
      assert.deepEqual(await entries(store, "p/"), [
        ["p/a", 1],
        ["p/b", 2],
      ]);
      await store.close();
    }));

  test(`${name}: commit does nothing where a check does not hold`, () =>
    inFolder(async (folder) => {
      const store = await open(folder);
      await store.commit({ set: [["a", { x: 1, y: 2 }]] });
      assert.equal(await store.commit({ check: [["a", { x: 1 }]], set: [["b", 1]], delete: ["a"] }), false);
      assert.equal(await store.commit({ check: [["new", 1]], set: [["b", 1]] }), false);
      assert.deepEqual(await entries(store, ""), [["a", { x: 1, y: 2 }]]);
      assert.equal(
        await store.commit({
          check: [
            ["a", { y: 2, x: 1 }],
            ["new", undefined],
          ],
          delete: ["a"],
        }),
        true,
      );
      assert.deepEqual(await entries(store, ""), []);
      await store.close();
    }));

  test(`${name}: commits at once are done one after another`, () =>
    inFolder(async (folder) => {
      const store = await open(folder);
      const won = await Promise.all(
        Array.from({ length: 20 }, (_, i) =>
          store.commit({ check: [["one", undefined]], set: [["one", i]] }),
        ),
      );
      assert.deepEqual(won, [true, ...Array<boolean>(19).fill(false)]);
      assert.equal(await store.get("one"), 0);
      await store.close();
    }));

  test(`${name}: refuses what is not JSON, and values above 1 MiB`, () =>
    inFolder(async (folder) => {
      const store = await open(folder);
      await assert.rejects(store.commit({ set: [["a", undefined]] }), TypeError);
      await assert.rejects(store.commit({ set: [["a", "x".repeat(1024 * 1024)]] }), RangeError);
      assert.equal(await store.commit({ set: [["a", 1]] }), true);
      await store.close();
    }));
}
