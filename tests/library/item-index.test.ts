import assert from "node:assert/strict";
import { test } from "node:test";
import type { Infohash } from "../../src/base/ids.ts";
import type { UnixSeconds } from "../../src/base/time.ts";
import type { Item, ItemQuery } from "../../src/library/contract.ts";
import { newItem } from "../../src/library/item-changes.ts";
import { findItems } from "../../src/library/item-filter.ts";
import { TextHash } from "../../src/library/item-hash.ts";
import { ItemIndex } from "../../src/library/item-index.ts";
import { readDraft } from "../../src/library/item-members.ts";
import { channelName, foldText, sortKey } from "../../src/library/item-names.ts";
import type { StoredItem } from "../../src/library/item-record.ts";
import { TitleSearch } from "../../src/library/item-search.ts";
import { listed, sha1 } from "./item-parts.ts";

/** A seeded random generator. */
function dice(seed: number): (sides: number) => number {
  let state = seed;
  return (sides) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * sides);
  };
}

function made(id: number, roll: (sides: number) => number): StoredItem {
  const title = `${["Sport", "Élan", "кино", "a"][roll(4)]} ${roll(30)}${["", " HD", " [x]"][roll(3)]}`;
  const infohash = roll(2) === 0 ? null : (`${id}`.padStart(40, "0") as Infohash);
  const draft = listed(id, {
    ...(roll(2) === 0 && {
      content: { transport: "bt", contentId: null, infohash, magnet: null, url: "https://example.com/" },
    }),
    title,
    owner: ["ann", "bob", "_no_owner_"][roll(3)]!,
    category: [null, "tv", "movies"][roll(3)]!,
    subcategory: ["", "news"][roll(2)]!,
    tags: roll(3) === 0 ? ["news", `t${roll(9)}`] : [],
  });
  const origin = { externalPlaylistId: roll(3), sourceKey: roll(4) === 0 ? null : `key ${id}` };
  const { item, source } = newItem(id, readDraft(draft), origin, 5 as UnixSeconds);
  const deletedAt = roll(4) === 0 ? (9 as UnixSeconds) : null;
  return { item: { ...item, deletedAt, isFavorite: roll(2) === 0, isEnabled: roll(3) > 0 }, source };
}

function naively(items: readonly Item[], query: ItemQuery): number[] {
  const keys = new Map(items.map((item) => [item.id, sortKey(foldText(item.title))]));
  return items
    .filter((item) => (item.deletedAt !== null) === (query.state === "trash"))
    .filter((item) => query.owner === undefined || item.owner === query.owner)
    .filter((item) => query.category === undefined || item.category === query.category)
    .filter((item) => query.isFavorite === undefined || item.isFavorite === query.isFavorite)
    .filter((item) => query.isEnabled === undefined || item.isEnabled === query.isEnabled)
    .filter((item) => query.name === undefined || foldText(item.title).includes(foldText(query.name)))
    .filter(
      ({ subcategory, tags }) =>
        query.subcategory === undefined || [subcategory, ...tags].includes(query.subcategory),
    )
    .filter(
      ({ category, subcategory, tags }) =>
        query.label === undefined ||
        [query.label].flat().some((label) => [category, subcategory, ...tags].includes(label)),
    )
    .filter(({ content }) => !query.isSwarm || (content.transport === "bt" && content.infohash !== null))
    .sort((a, b) => {
      const [keyA, keyB] = [keys.get(a.id)!, keys.get(b.id)!];
      return query.sort === "added" || keyA === keyB ? a.id - b.id : keyA < keyB ? -1 : 1;
    })
    .map(({ id }) => id);
}

test("ItemIndex: agrees with a linear search while items are added, changed and removed", () => {
  for (const seed of [1, 2]) {
    const roll = dice(seed);
    const index = new ItemIndex(sha1, new TextHash(roll(2 ** 31), roll(2 ** 31)));
    const items = new Map<number, StoredItem>();
    for (let round = 0, nextId = 1; round < 40; round++) {
      const fresh = Array.from({ length: roll(180) }, () => made(nextId++, roll));
      const changed = [...items.keys()].filter(() => roll(20) === 0).map((id) => made(id, roll));
      index.put([...changed, ...fresh]);
      for (const kept of [...changed, ...fresh]) items.set(kept.item.id, kept);
      const going = [...items.keys()].filter(() => roll(round % 10 === 9 ? 2 : 50) === 0);
      for (const id of going) items.delete(id);
      index.drop(going);
      index.tidy();
      checkAgainst(index, [...items.values()], roll, `seed ${seed}, round ${round}`);
    }
  }
});

function checkAgainst(
  index: ItemIndex,
  kept: StoredItem[],
  roll: (sides: number) => number,
  where: string,
): void {
  const items = kept.map(({ item }) => item).sort((a, b) => a.id - b.id);
  assert.equal(index.size, items.length, where);
  const queries: ItemQuery[] = [{}, { sort: "added" }, { state: "trash" }, { name: "elan 1" }, { name: "И" }];
  queries.push(
    { owner: "ann", category: "tv" },
    { subcategory: "news", isFavorite: true },
    { isEnabled: false },
    { label: "news" },
    { label: ["t1", "movies", "unknown"] },
    { label: "tv", isSwarm: true },
  );
  for (const query of queries)
    assert.deepEqual(findItems(index, query), naively(items, query), `${where} ${JSON.stringify(query)}`);
  for (const playlist of [0, 1, 2]) {
    const active = items.filter((item) => item.externalPlaylistId === playlist && item.deletedAt === null);
    assert.equal(index.countOf(playlist), active.length, where);
  }
  for (let i = 0; i < 5 && items.length > 0; i++) checkOne(index, items, items[roll(items.length)]!, where);
}

function checkOne(index: ItemIndex, items: Item[], item: Item, where: string): void {
  const { columns } = index;
  const slot = columns.slotOf(item.id);
  if (item.sourceKey !== null)
    assert.equal(index.findSource(item.externalPlaylistId, item.sourceKey), slot, where);
  const group = index.sourcesOf(
    columns.owners[slot]!,
    columns.groupLow[slot]!,
    columns.groupHigh[slot]!,
    1e9,
  );
  const wanted = items.filter(
    (other) =>
      other.owner === item.owner &&
      other.deletedAt === null &&
      channelName(other.title) === channelName(item.title),
  );
  assert.deepEqual(
    group.map((one) => columns.ids[one]!).sort((a, b) => a - b),
    wanted.map(({ id }) => id),
    where,
  );
  assert.equal(index.findSource(77, "none"), -1);
}

test("TitleSearch: finds matches in all chunks, but not across titles", () => {
  const titles = Array.from({ length: 1300 }, (_, i) => `title ${i}`);
  const search = new TitleSearch(() => titles);
  const hits = (part: string) => [...search.find(part)].flatMap((is, slot) => (is === 1 ? [slot] : []));
  assert.deepEqual(hits("title 129"), [129, 1290, 1291, 1292, 1293, 1294, 1295, 1296, 1297, 1298, 1299]);
  assert.deepEqual(hits("1\ntitle"), []);
  assert.equal(hits("t").length, 1300);
  titles[700] = "";
  search.changed(700);
  assert.deepEqual(hits("700"), []);
  titles.push("last");
  search.changed(1300);
  assert.deepEqual(hits("last"), [1300]);
});

test("TextTable: the number of a text is reused after its last release", () => {
  const table = new ItemIndex(sha1, new TextHash(1, 2)).owners;
  const [a, b] = [table.acquire("a"), table.acquire("b")];
  assert.equal(table.acquire("a"), a);
  table.release(a);
  assert.equal(table.find("a"), a);
  table.release(a);
  assert.equal(table.find("a"), undefined);
  assert.equal(table.acquire("c"), a);
  assert.deepEqual([...table.containing("b")], [b]);
});

test("TextHash: depends on text and seed, and is evenly distributed", () => {
  const hash = new TextHash(1, 2);
  const seen = new Set<string>();
  for (let i = 0; i < 20_000; i++) {
    hash.of(`https://example.com/${i}`);
    seen.add(`${hash.low & 0xffff} ${hash.high & 0xffff}`);
  }
  assert.ok(seen.size > 19_900, `${seen.size}`);
  const other = new TextHash(1, 3);
  other.of("https://example.com/19999");
  assert.notEqual(other.high, hash.high);
});
