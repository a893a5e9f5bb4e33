import assert from "node:assert/strict";
import { test } from "node:test";
import type { Log } from "../../src/base/log.ts";
import type { ItemDraft } from "../../src/library/contract.ts";
import { Tombstones } from "../../src/library/item-tombstones.ts";
import { ItemWriter } from "../../src/library/item-writer.ts";
import { MAX_ITEMS, MAX_TOMBSTONES } from "../../src/library/limits.ts";
import { itemHouse, listed, sha1, swarmContent, urlContent } from "./item-parts.ts";

const list = (count: number, more: (i: number) => Partial<ItemDraft> = () => ({})) =>
  Array.from({ length: count }, (_, i) => listed(i, more(i)));

test("upsert: adds new items, updates changed items, and writes nothing for unchanged items", async () => {
  const house = await itemHouse();
  const first = await house.items.upsert(list(500));
  assert.deepEqual([first.added, first.changed, house.items.countOf(1)], [500, 0, 500]);
  await house.reopen();
  const { keysWritten, reads } = house.store;
  assert.deepEqual(await house.items.upsert(list(500)), { ids: first.ids, added: 0, changed: 0 });
  assert.equal(house.store.keysWritten, keysWritten);
  assert.equal(house.store.reads, reads);
  const renamed = await house.items.upsert(list(500, (i) => (i % 100 === 0 ? { title: `New ${i}` } : {})));
  assert.deepEqual(renamed, { ids: first.ids, added: 0, changed: 5 });
  assert.equal(house.store.keysWritten, keysWritten + 5);
  assert.equal((await house.items.query({ name: "new" })).total, 5);
  assert.equal((await house.items.query({ name: "channel 100" })).total, 0);
});

test("upsert: keeps the user's edits", async () => {
  const house = await itemHouse();
  await house.items.upsert([listed(1, { category: "tv" })]);
  await house.items.update(1, { title: "Mine", isFavorite: true });
  assert.equal((await house.items.upsert([listed(1, { category: "tv" })])).changed, 0);
  const moved = listed(1, {
    title: "Theirs",
    category: "music",
    content: urlContent("https://example.com/new"),
  });
  assert.equal((await house.items.upsert([moved])).changed, 1);
  await house.reopen();
  assert.equal((await house.items.upsert([moved])).changed, 0);
  const item = (await house.items.get(1))!;
  assert.deepEqual(
    [item.title, item.category, item.content.url, item.isFavorite],
    ["Mine", "music", "https://example.com/new", true],
  );
});

test("upsert: a new entry takes over the user's item with its title and content, once, and keeps its edits", async () => {
  const house = await itemHouse();
  const own = ({ title, content }: ItemDraft) => ({ title, content, category: "tv" });
  for (const draft of [listed(1), listed(2), listed(3, { title: "Other title" })])
    await house.items.add(own(draft));
  await house.items.update(1, { isFavorite: true, category: "mine" });
  await house.items.add({ ...own(listed(2)), owner: "ann" });
  const outcome = await house.items.upsert([...list(4), listed(2, { sourceKey: "again" })]);
  assert.deepEqual(outcome, { ids: [5, 1, 2, 6, 7], added: 3, changed: 2 });
  await house.reopen();
  const first = (await house.items.get(1))!;
  assert.deepEqual(
    [first.externalPlaylistId, first.sourceKey, first.isFavorite, first.category],
    [1, "key 1", true, "mine"],
  );
  assert.equal((await house.items.get(2))!.category, null, "the source decides what the user has not edited");
  assert.deepEqual(
    [(await house.items.get(3))!.externalPlaylistId, (await house.items.get(4))!.externalPlaylistId],
    [-1, -1],
  );
  assert.equal((await house.items.upsert(list(4))).changed, 0);
  assert.equal(await house.items.removeAll(1), 5);
});

test("upsert: locked items do not change; items in the trash stay there", async () => {
  const house = await itemHouse();
  await house.items.upsert(list(2));
  await house.items.update(1, { isLocked: true });
  await house.items.delete([2]);
  const outcome = await house.items.upsert(list(2, () => ({ title: "Other" })));
  assert.deepEqual(outcome, { ids: [1, 2], added: 0, changed: 1 });
  assert.equal((await house.items.get(1))!.title, "Channel 0");
  const trashed = (await house.items.get(2))!;
  assert.equal(trashed.title, "Other");
  assert.notEqual(trashed.deletedAt, null);
});

test("upsert: keeps learned facts until the content changes", async () => {
  const house = await itemHouse();
  await house.items.upsert([listed(1)]);
  await house.items.learn(1, { isLive: 0, fileCount: 3 });
  assert.equal((await house.items.upsert([listed(1)])).changed, 0);
  assert.equal((await house.items.upsert([listed(1, { title: "New" })])).changed, 1);
  assert.equal((await house.items.get(1))!.fileCount, 3);
  await house.items.upsert([listed(1, { title: "New", content: swarmContent(5) })]);
  const item = (await house.items.get(1))!;
  assert.deepEqual([item.fileCount, item.isLive], [null, -1]);
});

test("upsert: always adds drafts without a key, adds one item for a repeated key, and skips invalid drafts", async () => {
  const house = await itemHouse();
  const drafts = [
    listed(1, { sourceKey: null }),
    listed(1, { sourceKey: null }),
    listed(2),
    listed(2, { title: "again" }),
  ];
  drafts.push(listed(3, { content: urlContent("rtmp://x/1") }), listed(2, { externalPlaylistId: 2 }));
  const { ids, added } = await house.items.upsert(drafts);
  assert.deepEqual(ids, [1, 2, 3, 3, undefined, 4]);
  assert.equal(added, 4);
  await assert.rejects(house.items.upsert(list(501)), RangeError);
});

test("removeExcept: deletes items that the source no longer lists, except locked items", async () => {
  const house = await itemHouse();
  const { ids } = await house.items.upsert(list(400));
  await house.items.upsert([listed(1, { externalPlaylistId: 2 })]);
  await house.items.update(ids[10]!, { isLocked: true });
  await house.items.delete([ids[11]!]);
  const keep = new Set(ids.slice(0, 5) as number[]);
  assert.equal(await house.items.removeExcept(1, keep), 394);
  assert.deepEqual([house.items.countOf(1), house.items.countOf(2)], [6, 1]);
  await house.reopen();
  assert.deepEqual([house.items.countOf(1), house.items.countOf(2)], [6, 1]);
  assert.equal((await house.items.query({ state: "trash" })).total, 0);
});

test("upsert: a permanently deleted item returns only after its source has dropped it", async () => {
  const house = await itemHouse();
  await house.items.upsert(list(3));
  await house.items.delete([1, 2]);
  await house.items.clearTrash();
  const refresh = async (drafts: ItemDraft[]) => {
    const { ids } = await house.items.upsert(drafts);
    await house.items.removeExcept(1, new Set(ids.filter((id) => id !== undefined)));
    return ids;
  };
  assert.deepEqual(await refresh(list(3)), [undefined, undefined, 3]);
  await house.reopen();
  assert.deepEqual(await refresh(list(3)), [undefined, undefined, 3]);
  assert.deepEqual(await refresh(list(3).slice(1)), [undefined, 3]);
  assert.deepEqual(await refresh(list(3)), [4, undefined, 3]);
  await house.items.clear("_no_owner_");
  assert.deepEqual(await refresh(list(3)), [undefined, undefined, undefined]);
  assert.deepEqual(await refresh(list(3)), [undefined, undefined, undefined]);
});

test("ItemWriter: a full playlist refuses more items", () => {
  const parts = { store: {}, index: { size: MAX_ITEMS - 1 }, nextId: 1, savedMeta: undefined };
  const writer = new ItemWriter(parts as unknown as ConstructorParameters<typeof ItemWriter>[0]);
  writer.checkCapacity(1);
  assert.throws(() => writer.checkCapacity(2), { code: "too_many", message: /300000 items/ });
});

test("Tombstones: at the limit, adds no tombstone and warns once", () => {
  const warnings: string[] = [];
  const warn = (message: string) => void warnings.push(message);
  const log: Log = { error: warn, warn, info() {}, debug() {}, named: () => log };
  const tombstones = new Tombstones(sha1, log);
  const hash = (i: number) => i.toString(16).padStart(40, "0");
  for (let i = 0; i < MAX_TOMBSTONES; i++) tombstones.add(`gone/0000000001/${hash(i)}`);
  assert.equal(tombstones.keyFor(1, "a"), undefined);
  assert.equal(tombstones.keyFor(1, "b"), undefined);
  assert.equal(warnings.length, 1);
  tombstones.remove([`gone/0000000001/${hash(0)}`]);
  assert.match(tombstones.keyFor(1, "a")!, /^gone\/0000000001\/[0-9a-f]{40}$/);
  assert.equal([...tombstones.unlisted(1, true)].flat().length, MAX_TOMBSTONES - 1);
});

test("removeAll: deletes all items of the playlist, locked ones included", async () => {
  const house = await itemHouse();
  await house.items.upsert(list(3));
  await house.items.update(1, { isLocked: true });
  await house.items.delete([2]);
  await house.items.clearTrash();
  assert.equal(await house.items.removeAll(1), 2);
  assert.equal(house.items.countOf(1), 0);
  assert.deepEqual([...house.store.records.keys()], ["meta/items"]);
  assert.deepEqual((await house.items.upsert(list(1))).ids, [4]);
});

test("upsert: splits a batch of the longest texts into valid commits", async () => {
  const house = await itemHouse();
  const long = "語".repeat(4000);
  const outcome = await house.items.upsert(list(60, () => ({ description: long })));
  assert.equal(outcome.added, 60);
  await house.reopen();
  assert.equal((await house.items.query({})).total, 60);
});
