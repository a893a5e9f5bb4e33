import assert from "node:assert/strict";
import { test } from "node:test";
import { type Item, type ItemQuery, type ItemReader, NO_OWNER } from "../../src/library/contract.ts";
import { MAX_ITEMS } from "../../src/library/limits.ts";
import { itemHouse, listed, swarmContent, urlContent } from "./item-parts.ts";

test("add: sets defaults and an id that is never reused", async () => {
  const house = await itemHouse();
  const one = await house.items.add({ title: " One\n", content: swarmContent(1) });
  assert.equal(one.id, 1);
  assert.deepEqual(
    [one.title, one.owner, one.isLive, one.isEnabled, one.externalPlaylistId],
    ["One", NO_OWNER, -1, true, -1],
  );
  await house.items.delete([1]);
  await house.items.clearTrash();
  await house.reopen();
  assert.equal(await house.items.get(1), undefined);
  assert.equal((await house.items.add({ title: "Two", content: swarmContent(2) })).id, 2);
  assert.deepEqual(await house.items.get(2), (await house.items.query({})).items[0]);
});

test("add: refuses invalid items without a write", async () => {
  const house = await itemHouse();
  await assert.rejects(house.items.add({ title: "", content: swarmContent(1) }), { code: "bad_parameter" });
  await assert.rejects(house.items.add({ title: "x", content: urlContent("javascript:alert(1)") }), {
    code: "bad_parameter",
  });
  house.store.failure = new Error("no disk");
  await assert.rejects(house.items.add({ title: "x", content: swarmContent(1) }), /no disk/);
  assert.equal((await house.items.query({})).total, 0);
  house.store.failure = undefined;
  assert.equal((await house.items.add({ title: "x", content: swarmContent(1) })).title, "x");
  assert.ok(MAX_ITEMS >= 100_000);
});

test("update: concurrent changes to an item both apply, also after a restart", async () => {
  const house = await itemHouse();
  const { id } = await house.items.add({ title: "One", content: swarmContent(1) });
  await Promise.all([
    house.items.update(id, { title: "Two" }),
    house.items.update(id, { isFavorite: true }),
    house.items.updateMany([id], { tags: ["a"] }),
  ]);
  await house.reopen();
  const item = (await house.items.get(id))!;
  assert.deepEqual(
    [item.title, item.isFavorite, item.tags, item.edited],
    ["Two", true, ["a"], ["title", "isFavorite", "tags"]],
  );
});

test("update: an empty change writes nothing; an unknown id is refused", async () => {
  const house = await itemHouse();
  await house.items.add({ title: "One", content: swarmContent(1) });
  const { commits } = house.store;
  await house.clock.advance(5000);
  const item = await house.items.update(1, { title: "One", isFavorite: false });
  assert.equal(item.updatedAt, item.createdAt);
  assert.equal(house.store.commits, commits);
  await assert.rejects(house.items.update(9, { title: "x" }), { code: "unknown_item", message: /9/ });
  await assert.rejects(house.items.updateMany([1, 9], { isFavorite: true }), { code: "unknown_item" });
  assert.equal((await house.items.get(1))!.isFavorite, false);
  await assert.rejects(house.items.update(1, { title: "" }), { code: "bad_parameter" });
});

test("query: applies all filters", async () => {
  const house = await itemHouse();
  const add = (title: string, more: object = {}) =>
    house.items.add({ title, content: swarmContent(1), ...more });
  await add("Música 10", { category: "tv", subcategory: "pop", owner: "ann" });
  await add("musica 9", { category: "tv", tags: ["pop", "x"] });
  await add("Кино", { category: "movies", tags: ["popular"] });
  await house.items.upsert([listed(1)]);
  await house.items.update(2, { isFavorite: true, isEnabled: false });
  await house.items.delete([3]);
  const ids = async (query: ItemQuery) => (await house.items.query(query)).items.map(({ id }) => id);
  assert.deepEqual(await ids({}), [4, 2, 1]);
  assert.deepEqual(await ids({ sort: "added" }), [1, 2, 4]);
  assert.deepEqual(await ids({ name: " MUSICA " }), [2, 1]);
  assert.deepEqual(await ids({ name: "a\nc" }), []);
  assert.deepEqual(await ids({ name: "\u0301" }), [4, 2, 1]);
  assert.deepEqual(await ids({ owner: "ann" }), [1]);
  assert.deepEqual(await ids({ owner: "bob" }), []);
  assert.deepEqual(await ids({ category: "tv" }), [2, 1]);
  assert.deepEqual(await ids({ subcategory: "pop" }), [2, 1]);
  assert.deepEqual(await ids({ subcategory: "po" }), []);
  assert.deepEqual(await ids({ isFavorite: true }), [2]);
  assert.deepEqual(await ids({ isEnabled: true, isFavorite: false }), [4, 1]);
  assert.deepEqual(await ids({ externalPlaylistId: 1 }), [4]);
  assert.deepEqual(await ids({ state: "trash" }), [3]);
  assert.deepEqual(await ids({ ids: [2, 3, 77] }), [2]);
  assert.deepEqual(await ids({ offset: 1, limit: 1 }), [2]);
  assert.deepEqual(await house.items.query({ limit: 0 }), { total: 3, items: [] });
  const { hash, hashV2 } = house.items.figures((await house.items.get(1))!);
  assert.deepEqual(await ids({ hash }), [1]);
  assert.deepEqual(await ids({ hash: hashV2 }), [2, 1]);
  assert.deepEqual(await ids({ hash: "nonsense" }), []);
});

test("delete, restore: apply to the named items of the owner, locked ones included", async () => {
  const house = await itemHouse();
  for (const title of ["a", "b", "c"])
    await house.items.add({ title, content: swarmContent(1), owner: "ann" });
  await house.items.update(1, { isLocked: true });
  assert.equal(await house.items.delete([1, 2, 2], "ann"), 2);
  assert.equal(await house.items.delete([1]), 0);
  await assert.rejects(house.items.delete([3], "bob"), { code: "unknown_item" });
  await assert.rejects(house.items.restore(1, "bob"), { code: "unknown_item" });
  await assert.rejects(house.items.restore(3, "ann"), { code: "unknown_item", message: /not in the trash/ });
  await house.items.restore(1, "ann");
  assert.equal((await house.items.get(1))!.deletedAt, null);
});

test("updateMany: changes all items, locked ones included", async () => {
  const house = await itemHouse();
  for (const title of ["a", "b"]) await house.items.add({ title, content: swarmContent(1) });
  await house.items.update(1, { isLocked: true });
  assert.equal(await house.items.updateMany([1, 2], { isFavorite: true }), 2);
  assert.equal(await house.items.updateMany([1, 2], { isLocked: false, isFavorite: true }), 1);
  const { items } = await house.items.query({ sort: "added" });
  assert.deepEqual(
    items.map((item) => [item.isLocked, item.isFavorite]),
    [
      [false, true],
      [false, true],
    ],
  );
});

test("clear, clearTrash: delete all items of one owner, locked ones included", async () => {
  const house = await itemHouse();
  for (const owner of ["ann", "ann", "ann", "bob"])
    await house.items.add({ title: owner, content: swarmContent(1), owner });
  await house.items.update(1, { isLocked: true });
  await house.items.delete([2]);
  await house.items.clear("ann");
  assert.deepEqual(
    (await house.items.query({ sort: "added" })).items.map(({ id }) => id),
    [4],
  );
  await house.items.clearTrash("bob");
  assert.equal((await house.items.query({ state: "trash" })).total, 1);
  await house.items.update(4, { isLocked: true });
  await house.items.delete([4]);
  await house.items.clearTrash();
  assert.equal((await house.items.query({ state: "trash" })).total, 0);
});

test("clear: after a failure each item is intact or deleted, and clear can be repeated", async () => {
  const house = await itemHouse();
  for (let at = 0; at < 1000; at += 500)
    await house.items.upsert(Array.from({ length: 500 }, (_, i) => listed(at + i)));
  const { commits } = house.store;
  const commit = house.store.commit.bind(house.store);
  house.store.commit = (change) => {
    if (house.store.commits === commits + 2) return Promise.reject(new Error("no disk"));
    return commit(change);
  };
  await assert.rejects(house.items.clear(NO_OWNER), /no disk/);
  const left = (await house.items.query({})).total;
  assert.ok(left > 0 && left < 1000, `${left}`);
  house.store.commit = commit;
  await house.reopen();
  assert.equal((await house.items.query({})).total, left);
  const outcome = await house.items.upsert(Array.from({ length: 500 }, (_, i) => listed(i)));
  assert.equal(outcome.added, 0);
  await house.items.clear(NO_OWNER);
  assert.equal((await house.items.query({})).total, 0);
});

test("group, otherSources: sources of one channel, of one owner, that are active", async () => {
  const house = await itemHouse();
  const add = (title: string, more: object = {}) =>
    house.items.add({ title, content: swarmContent(1), ...more });
  await add("Arte HD");
  await add("arte [backup]", { isLive: 1, content: urlContent("http://x/a.m3u8") });
  await add("ARTE 4K", { isLive: 1 });
  await add("Arte", { owner: "bob" });
  await add("Arte 2");
  await add("arte");
  await house.items.delete([6]);
  assert.deepEqual(await house.items.group(2), [2, 1, 3]);
  assert.deepEqual(await house.items.group(5), [5]);
  const others = async (id: number, limit = 9) =>
    (await house.items.otherSources(id, limit)).map((item) => item.id);
  assert.deepEqual(await others(1), [3, 2]);
  assert.deepEqual(await others(1, 1), [3]);
  assert.deepEqual(await others(5), []);
  await house.items.update(2, { isFavorite: true });
  assert.deepEqual(await others(1), [2, 3]);
  await house.items.update(2, { isEnabled: false });
  assert.deepEqual(await others(1), [3]);
  await assert.rejects(house.items.group(99), { code: "unknown_item" });
});

test("figures: computes the properties of an item", async () => {
  const house = await itemHouse();
  const film = await house.items.add({
    title: "Film",
    content: swarmContent(1),
    isLive: 0,
    fileCount: 2,
    logo: "b".repeat(40),
    poster: "https://x/p.jpg",
    tvgLogo: "javascript:1",
  });
  const figures = house.items.figures(film);
  assert.match(figures.hash, /^[0-9a-f]{40}$/);
  assert.match(figures.hashV2, /^[0-9a-f]{40}$/);
  assert.deepEqual(figures.icons, [
    { type: "logo", imageId: "b".repeat(40) },
    { type: "poster", url: "https://x/p.jpg" },
  ]);
  assert.deepEqual(
    [figures.isMultiVod, figures.isMultiTfile, figures.isWrappedUrl, figures.showAutosearch],
    [true, true, 0, false],
  );
  const other = await house.items.add({
    title: "FILM (HD)",
    content: urlContent("http://x/1"),
    isLive: 1,
    fileCount: null,
  });
  const others = house.items.figures(other);
  assert.equal(others.hash, figures.hash);
  assert.notEqual(others.hashV2, figures.hashV2);
  assert.deepEqual(
    [others.isMultiVod, others.isMultiTfile, others.isWrappedUrl, others.showAutosearch],
    [false, false, 1, true],
  );
  assert.equal(house.items.figures(film).showAutosearch, true);
});

test("learn: stores facts, which are not edits of the user", async () => {
  const house = await itemHouse();
  const before = await house.items.add({ title: "x", content: urlContent("http://x/1") });
  await house.clock.advance(9000);
  const item = await house.items.learn(1, { isLive: 0, fileCount: 4 });
  assert.deepEqual([item.isLive, item.fileCount, item.edited, item.updatedAt], [0, 4, [], before.updatedAt]);
});

async function readAll(reader: ItemReader): Promise<Item[]> {
  const seen: Item[] = [];
  for (let some = await reader.next(); some.length > 0; some = await reader.next()) seen.push(...some);
  return seen;
}

test("read: pages through thousands of items in any order, while items are added, removed and renamed", async () => {
  const house = await itemHouse();
  for (let at = 0; at < 5000; at += 500)
    await house.items.upsert(Array.from({ length: 500 }, (_, i) => listed(at + i)));
  for (const query of [{}, { sort: "added" }, { name: "1" }, { offset: 2_345, limit: 2_222 }] as const) {
    const all = await house.items.query(query);
    const ids = (items: readonly Item[]) => items.map(({ id }) => id);
    assert.deepEqual(ids(await readAll(house.items.read(query))), ids(all.items), JSON.stringify(query));
  }
  const reader = house.items.read({});
  const seen = [...(await reader.next())];
  // The position of a reader is an item that is removed or renamed meanwhile, and slots move.
  const gone = Array.from({ length: 2_000 }, (_, i) => i + 1);
  await house.items.delete(gone).then(() => house.items.clearTrash());
  await house.items.update(2_500, { title: "Channel 99999" });
  seen.push(...(await readAll(reader)));
  assert.deepEqual(
    seen.slice(100).map(({ title }) => title),
    [...Array.from({ length: 3_000 }, (_, i) => i + 2_000).filter((i) => i !== 2_499), 99_999].map(
      (i) => `Channel ${i}`,
    ),
  );
});

test("read, outline, query: run one after another, each in a turn of the event loop of its own", async () => {
  const house = await itemHouse();
  await house.items.upsert(Array.from({ length: 250 }, (_, i) => listed(i)));
  let turn = 0;
  let isOver = false;
  const count = () => {
    turn++;
    if (!isOver) setImmediate(count);
  };
  count();
  const { items } = house;
  for (const run of [() => items.read({}).next(), () => items.outline({}), () => items.query({ limit: 0 })]) {
    const turns = new Set<number>();
    await Promise.all(Array.from({ length: 20 }, () => run().then(() => turns.add(turn))));
    assert.equal(turns.size, 20);
  }
  isOver = true;
});

test("read: yields all in order while items are added and removed", async () => {
  const house = await itemHouse();
  for (let at = 0; at < 1000; at += 500)
    await house.items.upsert(Array.from({ length: 500 }, (_, i) => listed(at + i)));
  const reader = house.items.read({});
  const seen = [...(await reader.next())];
  await house.items.delete([1000]).then(() => house.items.clearTrash());
  seen.push(...(await readAll(reader)));
  assert.equal(seen.length, 999);
  assert.deepEqual(
    seen.slice(0, 12).map(({ title }) => title),
    Array.from({ length: 12 }, (_, i) => `Channel ${i}`),
  );
});

test("createItems: ignores a damaged record with one warning; its id is not reused", async () => {
  const house = await itemHouse();
  for (const title of ["a", "b", "c"]) await house.items.add({ title, content: swarmContent(1) });
  house.store.records.set("item/0000000002", '{"title":5}');
  house.store.records.set("item/0000000009", "[]");
  house.store.records.set("item/what", "{}");
  house.store.records.delete("meta/items");
  await house.reopen();
  assert.deepEqual(
    (await house.items.query({})).items.map(({ id }) => id),
    [1, 3],
  );
  assert.equal(house.warnings.length, 1);
  assert.equal((await house.items.add({ title: "d", content: swarmContent(1) })).id, 10);
  house.store.records.set("item/0000000001", "[]");
  assert.equal(await house.items.get(1), undefined);
  assert.deepEqual(
    (await house.items.query({})).items.map(({ id }) => id),
    [3, 10],
  );
  assert.equal(house.warnings.length, 2);
});
