import assert from "node:assert/strict";
import { test } from "node:test";
import { SILENT_LOG } from "../../src/base/log.ts";
import { shuffle } from "../../src/base/random.ts";
import { type EntryFingerprints, fingerprintOf, matchEntries } from "../../src/library/refresh-match.ts";
import { planRefresh } from "../../src/library/refresh-plan.ts";
import { createSourceRows, type SourceRow } from "../../src/library/source-rows.ts";
import { openMemory } from "../../src/runtime/kv-memory.ts";
import { seededRandom } from "../seeded-random.ts";

const atOnce = async () => {};

/** Parses `link title guide`. */
function marksOf(...entries: string[]): EntryFingerprints[] {
  return entries.map((entry) => {
    const [link, name, guide] = entry.split(" ");
    return {
      link: fingerprintOf(link!),
      name: fingerprintOf(name!),
      guide: guide ? fingerprintOf(guide) : 0,
    };
  });
}

async function matched(before: EntryFingerprints[], now: EntryFingerprints[]): Promise<number[]> {
  return [...(await matchEntries(before, now, atOnce))];
}

test("matchEntries: order does not matter", async () => {
  const before = marksOf("l1 a", "l2 b", "l3 c", "l4 c");
  const now = marksOf("l4 c", "l1 a", "l3 c", "l2 b");
  assert.deepEqual(await matched(before, now), [3, 0, 2, 1]);
});

test("matchEntries: matches a channel whose link or title changes", async () => {
  const before = marksOf("l1?token=1 one", "l2 two", "l3 three");
  assert.deepEqual(await matched(before, marksOf("l1?token=2 one", "l2 two-HD", "l3 three")), [0, 1, 2]);
});

test("matchEntries: if both change, matches by a unique guide channel", async () => {
  const before = marksOf("l1 one g1", "l2 two g2", "l3 two-HD g2");
  assert.deepEqual(await matched(before, marksOf("k1 eins g1", "k2 zwei g2")), [0, -1]);
});

test("matchEntries: if two channels swap links, titles decide", async () => {
  assert.deepEqual(await matched(marksOf("l1 one", "l2 two"), marksOf("l2 one", "l1 two")), [0, 1]);
});

test("matchEntries: entries with one title and new links match in order", async () => {
  const before = marksOf("l1 a", "l2 a", "l3 a");
  assert.deepEqual(await matched(before, marksOf("k1 a", "k2 a", "k3 a", "k4 a")), [0, 1, 2, -1]);
});

test("matchEntries: one link with several titles is several entries", async () => {
  const before = marksOf("l a", "l b", "l c");
  assert.deepEqual(await matched(before, marksOf("l c", "l a", "l b")), [2, 0, 1]);
});

test("matchEntries: never matches an entry twice", async () => {
  for (let seed = 1; seed <= 300; seed++) {
    const random = seededRandom(seed);
    const list = () =>
      Array.from({ length: Math.floor(random() * 30) }, () => ({
        link: 1 + Math.floor(random() * 12),
        name: 1000 + Math.floor(random() * 12),
        guide: Math.floor(random() * 5),
      }));
    const [before, now] = [list(), list()];
    const given = (await matched(before, now)).filter((index) => index >= 0);
    assert.equal(new Set(given).size, given.length, `seed ${seed}`);
    assert.ok(
      given.every((index) => index < before.length),
      `seed ${seed}`,
    );
    // The unmatched entries of both sides share no fingerprint.
    const found = await matched(before, now);
    const lost = before.filter((_, index) => !given.includes(index));
    for (const [i, index] of found.entries())
      if (index < 0)
        assert.ok(!lost.some((old) => old.link === now[i]!.link || old.name === now[i]!.name), `${seed}`);
  }
});

test("fingerprintOf: different texts have different fingerprints, below 2^53 and above 0", () => {
  const fingerprints = new Set<number>();
  for (let i = 0; i < 200_000; i++) {
    const fingerprint = fingerprintOf(`http://host.example/live/${i}.ts`);
    assert.ok(Number.isSafeInteger(fingerprint) && fingerprint > 0);
    fingerprints.add(fingerprint);
  }
  assert.equal(fingerprints.size, 200_000);
});

function rowsOf(...entries: string[]): SourceRow[] {
  return marksOf(...entries).map((fingerprints, i) => ({ ...fingerprints, key: i + 1, goneSince: 0 }));
}

test("planRefresh: known entries keep their keys, new ones get new keys, exact repeats none", async () => {
  const plan = await planRefresh(
    rowsOf("l1 a", "l2 b"),
    marksOf("l3 c", "l2 b", "l1 renamed", "l2 b"),
    3,
    100,
    atOnce,
  );
  assert.deepEqual(plan.keys, [3, 2, 1, 0]);
  assert.equal(plan.nextKey, 4);
  assert.deepEqual(
    plan.rows.map(({ key, goneSince }) => [key, goneSince]),
    [
      [1, 0],
      [2, 0],
      [3, 0],
    ],
  );
});

test("planRefresh: an entry that returns within a month gets its key back", async () => {
  const first = await planRefresh(rowsOf("l1 a", "l2 b"), marksOf("l1 a"), 3, 100, atOnce);
  assert.deepEqual(
    first.rows.map(({ key, goneSince }) => [key, goneSince]),
    [
      [1, 0],
      [2, 100],
    ],
  );
  const back = await planRefresh(first.rows, marksOf("l1 a", "k2 b"), first.nextKey, 129, atOnce);
  assert.deepEqual(back.keys, [1, 2]);
  const later = await planRefresh(first.rows, marksOf("l1 a"), first.nextKey, 131, atOnce);
  assert.deepEqual(
    later.rows.map(({ key }) => key),
    [1],
  );
  const new2 = await planRefresh(later.rows, marksOf("l1 a", "l2 b"), later.nextKey, 132, atOnce);
  assert.deepEqual(new2.keys, [1, 3]);
});

test("SourceRows: loads what was saved; a change writes only its record", async () => {
  const store = openMemory();
  const written: string[] = [];
  const counting = {
    ...store,
    commit: (change: Parameters<typeof store.commit>[0]) => {
      written.push(
        ...(change.set ?? []).map(([key]) => key),
        ...(change.delete ?? []).map((key) => `-${key}`),
      );
      return store.commit(change);
    },
  };
  const rows = createSourceRows(counting, SILENT_LOG, atOnce);
  const names = shuffle(
    Array.from({ length: 20_000 }, (_, i) => `l${i} n${i}`),
    seededRandom(1),
  );
  const many = rowsOf(...names);
  await rows.save(7, [], many);
  assert.deepEqual(await rows.load(7), many);
  assert.deepEqual(await rows.load(70), []);

  written.length = 0;
  const changed = many
    .map((row) => (row.key === 5_000 ? { ...row, link: 5 } : row))
    .filter(({ key }) => key < 19_300);
  await rows.save(7, many, changed);
  assert.deepEqual(await rows.load(7), changed);
  assert.equal(written.length, 3, written.join(" "));

  await rows.clear(7);
  assert.deepEqual(await rows.load(7), []);
});

test("SourceRows: the largest rows fit the store's records", async () => {
  const rows = createSourceRows(openMemory(), SILENT_LOG, atOnce);
  const most = Number.MAX_SAFE_INTEGER;
  const large = Array.from({ length: 9_000 }, (_, i) => ({
    key: 1_000_000_000 + i,
    link: most,
    name: most,
    guide: most,
    goneSince: 99_999,
  }));
  await rows.save(1, [], large);
  assert.equal((await rows.load(1)).length, 9_000);
});

test("SourceRows: logs a damaged record and loads the others", async () => {
  const store = openMemory();
  const told: string[] = [];
  const rows = createSourceRows(store, { ...SILENT_LOG, error: (message) => told.push(message) }, atOnce);
  await rows.save(1, [], rowsOf("a a"));
  await store.commit({ set: [["source/0000000001/00000009", [1, 2, 3]]] });
  assert.equal((await rows.load(1)).length, 1);
  assert.match(told.join(), /source\/0000000001\/00000009/);
});
