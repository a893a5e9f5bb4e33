import assert from "node:assert/strict";
import { test } from "node:test";
import type { Log } from "../../src/base/log.ts";
import type { ItemDraft } from "../../src/library/contract.ts";
import { Tombstones } from "../../src/library/item-tombstones.ts";
import { ItemWriter, type ItemWriterParts } from "../../src/library/item-writer.ts";
import { MAX_ITEMS, MAX_TOMBSTONES } from "../../src/library/limits.ts";
import { itemHouse, listed, sha1, swarmContent, urlContent } from "./item-parts.ts";

const list = (count: number, more: (i: number) => Partial<ItemDraft> = () => ({})) =>
  Array.from({ length: count }, (_, i) => listed(i, more(i)));

test("upsert: adds what is new, changes what differs, and writes nothing for the rest", async () => {
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

test("upsert: what the user has edited stays, whatever the source says", async () => {
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

test("upsert: locked items do not change, trash stays trash", async () => {
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

test("upsert: what was found out stays until the source plays something else", async () => {
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

test("upsert: what has no key is always new, what is named twice is one, what cannot be kept is none", async () => {
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

test("removeExcept: what the source dropped goes, but for locked items", async () => {
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

test("upsert: what the user deleted for good comes back only after its source has dropped it", async () => {
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

test("upsert, add: a full playlist takes no more, and says how many it holds", () => {
  const parts = { index: { size: MAX_ITEMS - 1 }, nextId: 1, savedMeta: undefined };
  const writer = new ItemWriter(parts as unknown as ItemWriterParts);
  writer.makeRoom(1);
  assert.throws(() => writer.makeRoom(2), { code: "too_many", message: /300000 items/ });
});

test("Tombstones: beyond the bound none is kept, which is told once", () => {
  const warnings: string[] = [];
  const warn = (message: string) => void warnings.push(message);
  const log: Log = { error: warn, warn, info() {}, debug() {}, named: () => log };
  const tombstones = new Tombstones(sha1, log);
  const hash = (i: number) => i.toString(16).padStart(40, "0");
  for (let i = 0; i < MAX_TOMBSTONES; i++) tombstones.load(`gone/0000000001/${hash(i)}`);
  assert.equal(tombstones.keyFor(1, "a"), undefined);
  assert.equal(tombstones.keyFor(1, "b"), undefined);
  assert.equal(warnings.length, 1);
  tombstones.remove([`gone/0000000001/${hash(0)}`]);
  assert.match(tombstones.keyFor(1, "a")!, /^gone\/0000000001\/[0-9a-f]{40}$/);
  assert.equal([...tombstones.unlisted(1, true)].flat().length, MAX_TOMBSTONES - 1);
});

test("removeAll: everything goes with its playlist; locked items become the user's own", async () => {
  const house = await itemHouse();
  await house.items.upsert(list(3));
  await house.items.update(1, { isLocked: true });
  await house.items.delete([2]);
  await house.items.clearTrash();
  assert.equal(await house.items.removeAll(1), 1);
  const own = (await house.items.get(1))!;
  assert.deepEqual([own.externalPlaylistId, own.sourceKey, house.items.countOf(1)], [-1, null, 0]);
  assert.deepEqual([...house.store.records.keys()].sort(), ["item/0000000001", "meta/items"]);
  assert.deepEqual((await house.items.upsert(list(1))).ids, [4]);
});

test("upsert: a batch of the longest texts is split, so that each commit can be kept", async () => {
  const house = await itemHouse();
  const long = "語".repeat(4000);
  const outcome = await house.items.upsert(list(60, () => ({ description: long })));
  assert.equal(outcome.added, 60);
  await house.reopen();
  assert.equal((await house.items.query({})).total, 60);
});
