import assert from "node:assert/strict";
import { test } from "node:test";
import type { Infohash } from "../../src/base/ids.ts";
import type { ItemDraft } from "../../src/library/contract.ts";
import { sharedMemory } from "../parts/shared-memory.ts";
import { openLibrary } from "./library-parts.ts";
import { until } from "./until.ts";

const draft = (title: string, more: Partial<ItemDraft> = {}): ItemDraft => ({
  title,
  content: {
    transport: "bt",
    contentId: null,
    infohash: Buffer.from(title.padEnd(20, "-")).toString("hex").slice(0, 40) as Infohash,
    magnet: null,
    url: null,
  },
  ...more,
});

async function twoEngines() {
  const open = sharedMemory();
  const [one, two] = [await openLibrary({ store: open() }), await openLibrary({ store: open() })];
  const titles = async ({ library }: typeof one, sort: "added" | "title" = "added") =>
    (await library.items.query({ sort })).items.map(({ title }) => title);
  return {
    one: one.library,
    two: two.library,
    titles: (n: 1 | 2, sort?: "added" | "title") => titles(n === 1 ? one : two, sort),
  };
}

test("shared store: two engines that add items at the same time lose none, and both list the same in the same order", async () => {
  const { one, two, titles } = await twoEngines();
  const add = (library: typeof one, name: string) =>
    Promise.all(Array.from({ length: 40 }, (_, i) => library.items.add(draft(`${name} ${i % 7} ${i}`))));
  const upsert = (library: typeof one, name: string) =>
    (library.items as unknown as { upsert(drafts: ItemDraft[]): Promise<{ ids: number[] }> }).upsert(
      Array.from({ length: 300 }, (_, i) => draft(`${name} list ${i}`, { sourceKey: `${name} ${i}` })),
    );
  const [added, , lists] = await Promise.all([
    add(one, "one"),
    add(two, "two"),
    upsert(two, "b"),
    upsert(one, "a"),
  ]);
  const total = 680;
  await until(
    async () => (await titles(1)).length === total && (await titles(2)).length === total,
    "all items",
  );
  assert.deepEqual(await titles(1), await titles(2));
  assert.deepEqual(await titles(1, "title"), await titles(2, "title"));
  assert.equal(new Set((await one.items.query({})).items.map(({ id }) => id)).size, total);
  for (const item of added) assert.equal((await two.items.get(item.id))?.title, item.title);
  for (const [i, id] of lists.ids.entries()) assert.equal((await one.items.get(id))?.title, `b list ${i}`);
  // Every way into the index knows the items of the other engine.
  assert.equal(
    (await one.items.query({ name: "two 3 3" })).total,
    (await two.items.query({ name: "two 3 3" })).total,
  );
  await Promise.all([one.close(), two.close()]);
});

test("shared store: changes of one item by two engines are both kept; a deleted item is gone on both", async () => {
  const { one, two, titles } = await twoEngines();
  const { id } = await one.items.add(draft("first"));
  await until(async () => (await titles(2)).length === 1, "the item on the other engine");
  await Promise.all([
    one.items.update(id, { title: "renamed" }),
    two.items.update(id, { isFavorite: true }),
    one.items.update(id, { category: "news" }),
    two.items.update(id, { description: "text" }),
  ]);
  const item = await two.items.get(id);
  assert.deepEqual(
    [item?.title, item?.isFavorite, item?.category, item?.description],
    ["renamed", true, "news", "text"],
  );
  await until(
    async () => (await titles(1))[0] === "renamed" && (await titles(2))[0] === "renamed",
    "the title",
  );
  await two.items.delete([id]);
  await two.items.clearTrash();
  await until(
    async () => (await one.items.query({ state: "trash" })).total === 0 && (await titles(1)).length === 0,
  );
  await assert.rejects(one.items.update(id, { title: "x" }), { code: "unknown_item" });
  await Promise.all([one.close(), two.close()]);
});

test("shared store: switches, the token, accounts, orders of sources and playlists of one engine hold on the other", async () => {
  const { one, two } = await twoEngines();
  let switched = 0;
  two.access.onSwitched(() => switched++);
  await one.access.setAllowsRemote(true);
  await until(() => two.access.allowsRemote && switched === 1, "the switch");
  await Promise.all([one.access.setAllowsIntranet(false), two.access.setAllowsRemote(false)]);
  await until(
    () => [one, two].every(({ access }) => !access.allowsRemote && !access.allowsIntranet),
    "both switches",
  );
  const token = await one.access.renewToken();
  assert.equal(await two.access.isToken(token), true);
  await one.accounts.add("a@example.org", "password 1");
  assert.equal(await two.accounts.signInByPassword("a@example.org", "password 1", "127.0.0.1"), true);
  const usual = { type: "content", category: "", updateInterval: 3600, login: "", password: "" } as const;
  const options = { updateNow: false, allowPrivateUrls: false };
  const add = (library: typeof one, name: string) =>
    library.externalPlaylists.add({ ...usual, name, url: `http://lists.example/${name}` }, options);
  const ids = await Promise.all([add(one, "a"), add(two, "b"), add(one, "c"), add(two, "d")]);
  assert.equal(new Set(ids).size, 4);
  const names = async (library: typeof one) =>
    (await library.externalPlaylists.list()).map(({ name }) => name).sort();
  await until(
    async () => (await names(one)).length === 4 && (await names(two)).length === 4,
    "all playlists",
  );
  await two.externalPlaylists.delete(ids[0]!);
  await until(async () => (await names(one)).join() === "b,c,d", "the deletion");
  await Promise.all([one.close(), two.close()]);
});
