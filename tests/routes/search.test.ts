import assert from "node:assert/strict";
import { test } from "node:test";
import type { ItemDraft } from "../../src/library/contract.ts";
import { controlClient, withRealClient } from "./control-client.ts";

const digits = (digit: string) => digit.repeat(40);

/** A client whose playlist has channels with several sources, and what a search must not find. */
async function searchClient() {
  const app = controlClient();
  const add = (title: string, digit: string | null, more: Partial<ItemDraft> = {}) =>
    app.library.items.add({
      title,
      content: {
        transport: "bt",
        contentId: null,
        infohash: digit === null ? null : (digits(digit) as never),
        magnet: null,
        url: null,
      },
      ...more,
    });
  await add("World News", "1", {
    languages: ["eng"],
    countries: ["gb"],
    category: "tv",
    tvgLogo: "http://l.example/n.png",
  });
  await add("World News", "2", { tags: ["informational"] });
  await add("Sport News", "3", { category: "tv" });
  await add("News of nobody", null);
  const off = await add("News off", "4");
  await app.library.items.update(off.id, { isEnabled: false });
  await app.library.items.delete([(await add("News in the trash", "5")).id]);
  const kept = [
    { name: "kept news film", infohash: digits("6") },
    { name: "kept again", infohash: digits("1") },
  ];
  Object.defineProperty(app.engine, "inspect", {
    value: {
      search: async (text: string, limit: number) =>
        kept.filter(({ name }) => text.split(" ").every((word) => name.includes(word))).slice(0, limit),
    },
  });
  return app;
}

test("/search: groups the sources of a channel, with the members that clients read", async () => {
  const app = await searchClient();
  const { result, error } = await app.json("/search?query=news");
  assert.equal(error, null);
  assert.equal(result.total, 3);
  assert.equal(typeof result.time, "number");
  assert.deepEqual(
    result.results.map((group: { name: string; items: unknown[] }) => [group.name, group.items.length]),
    [
      ["Sport News", 1],
      ["World News", 2],
      ["kept news film", 1],
    ],
  );
  const [, world, kept] = result.results;
  assert.deepEqual(world.icons, [{ url: "http://l.example/n.png", type: "logo" }]);
  assert.deepEqual(world.items[0], {
    channel_id: -1,
    bitrate: 0,
    categories: ["tv"],
    languages: ["eng"],
    countries: ["gb"],
    infohash: digits("1"),
    name: "World News",
    availability: 0,
    availability_updated_at: 1_780_000_000,
    status: 1,
    in_playlist: true,
  });
  assert.equal(kept.items[0].in_playlist, false);
});

test("/search: all words count, in any order; a category is one of the item's; nothing found is an empty list", async () => {
  const app = await searchClient();
  const names = async (query: string) => {
    const { result } = await app.json(`/search?group_by_channels=0&${query}`);
    return result.results.map((item: { name: string }) => item.name).join();
  };
  assert.equal(await names("query=news%20wor"), "World News,World News");
  assert.equal(await names("query=news&category=tv"), "Sport News,World News");
  assert.equal(await names("query=news&category=informational"), "World News");
  assert.equal(await names("query=nothing"), "");
  assert.equal(await names(""), "Sport News,World News,World News,kept news film");
});

test("/search: pages from 0 on, 10 a page, 200 at most", async () => {
  const app = await searchClient();
  for (let i = 0; i < 12; i++)
    await app.library.items.add({
      title: `channel ${i}`,
      content: {
        transport: "bt",
        contentId: null,
        infohash: (0xc00 + i).toString(16).padStart(40, "0") as never,
        magnet: null,
        url: null,
      },
    });
  const lengths = async (query: string) => {
    const { result } = await app.json(`/search?query=channel&${query}`);
    return [result.total, result.results.length];
  };
  assert.deepEqual(await lengths(""), [12, 10]);
  assert.deepEqual(await lengths("page=1"), [12, 2]);
  assert.deepEqual(await lengths("page=2&page_size=200"), [12, 0]);
  assert.deepEqual(await lengths("page=3&page_size=3"), [12, 3]);
  const tooMany = await app.call("/search?query=a&page_size=201");
  assert.equal(tooMany.status, 400);
  assert.match(await tooMany.text(), /page_size: expected 1 to 200/);
  assert.equal((await app.call(`/search?query=${"x".repeat(201)}`)).status, 400);
});

test("/search: what is connected to peers is available", async () => {
  const app = await searchClient();
  const figures = app.engine.figures();
  const transfer = { infohash: digits("3"), figures: { connectedPeers: 2 } };
  Object.defineProperty(app.engine, "figures", { value: () => ({ ...figures, transfers: [transfer] }) });
  const { result } = await app.json("/search?query=sport");
  const [item] = result.results[0].items;
  assert.equal(item.availability, 1);
  assert.equal(item.status, 2);
  assert.ok(item.availability_updated_at > 1_700_000_000);
});

test("search: the method answers the same, with a token only", async () => {
  const app = await searchClient();
  const result = await app.result("search", { query: "sport" });
  assert.equal(result.results[0].items[0].infohash, digits("3"));
  assert.equal((await app.error("search", { query: "sport", token: "" })).code, 104);
});

test(
  "/search: titles are found whatever their case and accents, the sources of a channel together",
  withRealClient(async (app) => {
    const titles = ["Canal Électro HD", "CANAL ELECTRO (fhd)", "Canal Autre"];
    for (const [i, title] of titles.entries())
      await app.result("playlist_add_item", { title, infohash: digits(String(i + 1)) });
    const { result } = await app.json("/search?query=electro%20canal");
    assert.equal(result.total, 1);
    assert.equal(result.results[0].items.length, 2);
    assert.equal((await app.json("/search?query=canal")).result.total, 2);
  }),
);
