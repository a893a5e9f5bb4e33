import assert from "node:assert/strict";
import { test as runnerTest } from "node:test";
import { MAX_COMMIT_BYTES, MAX_COMMIT_KEYS, MAX_VALUE_BYTES } from "../../src/base/store-limits.ts";
import type { KeyValueStore } from "../../src/runtime/contract.ts";
import { inFolder } from "./folder.ts";

/** Opens the store in a folder; may be called repeatedly. */
type Open = (folder: string) => Promise<KeyValueStore>;

/** Differences between stores. */
interface SuiteOptions {
  /** Closing loses all records. */
  readonly isForgetful?: boolean;
  /** The `test` of a tier; that of the runner by default. */
  readonly test?: typeof runnerTest;
}

async function entries(store: KeyValueStore, prefix: string): Promise<(readonly [string, unknown])[]> {
  const all: (readonly [string, unknown])[] = [];
  for await (const entry of store.list(prefix)) all.push(entry);
  return all;
}

const keysOf = async (store: KeyValueStore, prefix: string) =>
  (await entries(store, prefix)).map(([key]) => key);

/** The conformance suite of every KeyValueStore. */
export function keyValueSuite(
  name: string,
  open: Open,
  { isForgetful = false, test = runnerTest }: SuiteOptions = {},
): void {
  const check = (
    what: string,
    work: (store: KeyValueStore, again: () => Promise<KeyValueStore>) => Promise<void>,
  ) =>
    test(`${name}: ${what}`, () =>
      inFolder(async (folder) => {
        let store = await open(folder);
        const again = async () => {
          await store.close();
          store = await open(folder);
          return store;
        };
        try {
          await work(store, again);
        } finally {
          await store.close();
        }
      }));

  check("get returns what commit set, also after reopening", async (store, again) => {
    const value = { n: 1.5e-7, list: ["é\n\u0000\ud800", null, true], "": {}, ["__proto__"]: 1 };
    assert.equal(await store.get("a"), undefined);
    assert.equal(await store.commit({ set: [["a", value]] }), true);
    const expected = JSON.parse(JSON.stringify(value));
    assert.deepEqual(await store.get("a"), expected);
    if (!isForgetful) assert.deepEqual(await (await again()).get("a"), expected);
  });

  check("a check holds whatever the order of members, at any depth", async (store) => {
    const inOrder = [
      { a: 1, b: { "10": 1, "9": 2, c: [] } },
      { b: 1, list: [{ d: 1, e: 2 }] },
    ];
    const others = [
      { b: { c: [], "9": 2, "10": 1 }, a: 1 },
      { list: [{ e: 2, d: 1 }], b: 1 },
    ];
    for (const [index, value] of [...inOrder, ...others].entries()) {
      const key = `order/${index}`;
      await store.commit({ set: [[key, value]] });
      for (const same of [inOrder[index % 2], others[index % 2]])
        assert.equal(await store.commit({ check: [[key, same]] }), true, `${key}: ${JSON.stringify(same)}`);
      assert.equal(await store.commit({ check: [[key, { ...value, z: 1 }]] }), false);
    }
  });

  check("list yields the prefix in byte order", async (store) => {
    // In UTF-16 order the last key would precede the one with U+FF61.
    const keys = ["p", "p/", "p/A", "p/a", "p/b", "p/b/c", "p/é", "p/\uff61", "p/\u{1f600}"];
    const others = ["P/a", "o", "q", "p.", "p0", "\u{10ffff}"];
    await store.commit({ set: [...keys, ...others].reverse().map((key) => [key, key]) });
    assert.deepEqual(await keysOf(store, "p/"), keys.slice(1));
    assert.deepEqual(await keysOf(store, "p/\u{1f600}"), ["p/\u{1f600}"]);
    assert.deepEqual(await keysOf(store, "\u{10ffff}"), ["\u{10ffff}"]);
    assert.deepEqual(await keysOf(store, "p/b/c/d"), []);
    assert.equal((await keysOf(store, "")).length, keys.length + others.length);
  });

  check("commit changes nothing if a check does not hold", async (store) => {
    await store.commit({ set: [["a", { x: 1, y: [2] }]] });
    assert.equal(await store.commit({ check: [["a", { x: 1 }]], set: [["b", 1]], delete: ["a"] }), false);
    assert.equal(await store.commit({ check: [["a", undefined]], set: [["b", 1]] }), false);
    assert.equal(await store.commit({ check: [["new", null]], set: [["b", 1]] }), false);
    assert.deepEqual(await entries(store, ""), [["a", { x: 1, y: [2] }]]);
    const fitting = [
      ["a", { y: [2], x: 1 }],
      ["new", undefined],
    ] as const;
    assert.equal(await store.commit({ check: fitting }), true);
    assert.equal(await store.commit({ check: fitting, delete: ["a"] }), true);
    assert.deepEqual(await entries(store, ""), []);
  });

  check("commit sets a key that it also deletes, and uses the last of two values", async (store) => {
    await store.commit({ set: [["a", 1]] });
    const twice = [
      ["a", 2],
      ["a", 3],
    ] as const;
    assert.equal(await store.commit({ delete: ["a", "none"], set: twice }), true);
    assert.deepEqual(await entries(store, ""), [["a", 3]]);
  });

  check("concurrent commits run one after another", async (store) => {
    const attempts = Array.from({ length: 20 }, (_, i) =>
      store.commit({ check: [["one", undefined]], set: [["one", i]] }),
    );
    assert.deepEqual(await Promise.all(attempts), [true, ...Array<boolean>(19).fill(false)]);
    assert.equal(await store.get("one"), 0);
  });

  check("list continues during commits and misses no record that stays", async (store) => {
    const key = (i: number) => `k/${String(i).padStart(4, "0")}`;
    const all = Array.from({ length: MAX_COMMIT_KEYS }, (_, i) => key(i));
    await store.commit({ set: all.map((one) => [one, 0]) });
    const seen: string[] = [];
    for await (const [one] of store.list("k/")) {
      seen.push(one);
      if (seen.length % 50 === 0)
        await store.commit({ delete: [key(seen.length - 1)], set: [["other", seen.length]] });
    }
    assert.deepEqual(seen, all);
    assert.equal((await keysOf(store, "k/")).length, MAX_COMMIT_KEYS - 10);
  });

  check("accepts values at the limits, and refuses more without a change", async (store) => {
    const key = "é".repeat(512);
    const large = "x".repeat(MAX_VALUE_BYTES - 2);
    await store.commit({
      set: [
        [key, large],
        ["wide", `€${"x".repeat(MAX_VALUE_BYTES - 5)}`],
      ],
    });
    assert.equal(await store.get(key), large);
    assert.deepEqual(await keysOf(store, key), [key]);
    const refused = (change: Parameters<KeyValueStore["commit"]>[0], error: typeof RangeError) =>
      assert.rejects(store.commit({ ...change, set: [["b", 1], ...(change.set ?? [])] }), error);
    await refused({ set: [["a", `${large}x`]] }, RangeError);
    await refused({ set: [[`${key}x`, 1]] }, RangeError);
    await refused({ set: [["", 1]] }, RangeError);
    await refused({ delete: Array.from({ length: MAX_COMMIT_KEYS }, (_, i) => `${i}`) }, RangeError);
    const parts = Math.ceil(MAX_COMMIT_BYTES / MAX_VALUE_BYTES);
    await refused({ set: Array.from({ length: parts }, (_, i) => [`${i}`, large]) }, RangeError);
    await refused({ set: [["a", undefined]] }, TypeError);
    await refused({ set: [["a", () => 1]] }, TypeError);
    await refused({ set: [["a\0b", 1]] }, TypeError);
    await refused({ set: [["a\ud800", 1]] }, TypeError);
    assert.equal(await store.get("b"), undefined);
    assert.equal(await store.commit({ set: [["b", 1]] }), true);
  });

  check("close waits for pending commits, may be called twice, and ends all use", async (store, again) => {
    const begun = store.commit({ set: [["a", 1]] });
    await Promise.all([store.close(), store.close()]);
    assert.equal(await begun, true);
    await assert.rejects(store.commit({ set: [["b", 1]] }), /closed/);
    await assert.rejects(store.get("a"), /closed/);
    await assert.rejects(keysOf(store, ""), /closed/);
    if (!isForgetful) assert.equal(await (await again()).get("a"), 1);
  });
}
