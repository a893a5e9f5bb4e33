import assert from "node:assert/strict";
import { test } from "node:test";
import type { UnixSeconds } from "../../src/base/time.ts";
import type { Health } from "../../src/health/health-contract.ts";
import type { ItemDraft } from "../../src/library/contract.ts";
import { controlClient, withRealClient } from "./control-client.ts";

const digits = (digit: string) => digit.repeat(40);

/** A client whose playlist has channels with several sources, and items that a search must not find. */
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
  await add("News without a source", null);
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

test("/search: groups the sources of a channel, with the members that clients expect", async () => {
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
  assert.ok(world.items[0].channel_id > 0);
  assert.notEqual(world.items[0].channel_id, kept.items[0].channel_id);
  assert.deepEqual(world.items[0], {
    channel_id: world.items[0].channel_id,
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

test("/search: matches all words in any order, and any category of an item; no match is an empty list", async () => {
  const app = await searchClient();
  const names = async (query: string) => {
    const { result } = await app.json(`/search?group_by_channels=0&${query}`);
    assert.ok(result.results.every(({ items }: { items: unknown[] }) => items.length === 1));
    return result.results.flatMap(({ items }: { items: { name: string }[] }) => items[0]!.name).join();
  };
  assert.equal(await names("query=news%20wor"), "World News,World News");
  assert.equal(await names("query=news&category=tv"), "Sport News,World News");
  assert.equal(await names("query=news&category=informational"), "World News");
  assert.equal(await names("query=nothing"), "");
  assert.equal(await names(""), "Sport News,World News,World News,kept news film");
});

test("/search: pages start at 0, with 10 results by default and at most 200, and clamps other values", async () => {
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
  assert.deepEqual(await lengths("page_size=1500"), [12, 12]);
  assert.deepEqual(await lengths("page_size=0"), [12, 1]);
  assert.deepEqual(await lengths("page=-1"), [12, 10]);
  assert.equal((await app.call(`/search?query=${"x".repeat(201)}`)).status, 400);
});

test("/search: content with connected peers is available", async () => {
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

test("search: the method returns the same, but needs the token", async () => {
  const app = await searchClient();
  const result = await app.result("search", { query: "sport" });
  assert.equal(result.results[0].items[0].infohash, digits("3"));
  assert.equal((await app.error("search", { query: "sport", token: "" })).code, 104);
});

test("search: the method also finds items without a swarm, by their item id", async () => {
  const app = await searchClient();
  const url = (path: string) => ({
    title: "Web news",
    content: {
      transport: "hls",
      contentId: null,
      infohash: null,
      magnet: null,
      url: `http://a.example/${path}`,
    } as const,
  });
  const ids = [await app.library.items.add(url("1.m3u8")), await app.library.items.add(url("2.m3u8"))].map(
    ({ id }) => id,
  );
  const { results } = await app.result("search", { query: "web", group_by_channels: 0 });
  const found = results.flatMap(({ items }: { items: Record<string, unknown>[] }) => items);
  assert.deepEqual(
    found.map(({ name, infohash, item_id, in_playlist }: Record<string, unknown>) => [
      name,
      infohash,
      item_id,
      in_playlist,
    ]),
    ids.map((id) => ["Web news", "", id, true]),
  );
  assert.equal((await app.result("search", { query: "without" })).results[0].name, "News without a source");
  assert.equal((await app.json("/search?query=web")).result.total, 0);
});

test(
  "/search: ignores case and accents, and groups the sources of a channel",
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

test(
  "/search: reads only the items of the page",
  withRealClient(async (app) => {
    for (let i = 0; i < 30; i++)
      await app.result("playlist_add_item", {
        title: `Channel ${i}`,
        infohash: (0xc00 + i).toString(16).padStart(40, "0"),
      });
    const { items } = app.library;
    const [film] = (await items.query({ limit: 1 })).items;
    const [outline] = await items.outline({ limit: 1 });
    const { hash, hashV2 } = items.figures(film!);
    assert.deepEqual(outline, {
      id: film!.id,
      channel: hash.slice(0, 16),
      content: hashV2.slice(0, 16),
      hasInfohash: true,
    });
    assert.equal(items.contentHash(film!.content.infohash!).slice(0, 16), outline!.content);
    const read: number[] = [];
    const query = items.query.bind(items);
    items.query = async (wanted) => {
      const page = await query(wanted);
      read.push(page.items.length);
      return page;
    };
    const { result } = await app.json("/search?query=channel&page=1&page_size=7");
    assert.deepEqual([result.total, result.results.length, read], [30, 7, [7]]);
    assert.equal(result.results[0].name, "Channel 7");
  }),
);

test("search and playlist_get: what visits found; the order by status", async () => {
  const app = controlClient();
  const found: [title: string, health: Health | undefined][] = [
    [
      "A dead",
      { status: "dead", availability: 0, checkedAt: 50 as UnixSeconds, last: undefined, problem: "no peer" },
    ],
    ["B unknown", undefined],
    [
      "C alive",
      {
        status: "alive",
        availability: 0.75,
        checkedAt: 60 as UnixSeconds,
        problem: undefined,
        last: {
          isAlive: true,
          startMs: 900,
          receivedPerSecond: 500_000,
          facts: {
            ...{ bytesPerSecond: 400_000, codecs: ["h264", "aac"], width: 1280, height: 720 },
            ...{ languages: ["fra"], isMoving: true },
          },
        },
      },
    ],
  ];
  for (const [i, [title, health]] of found.entries()) {
    const infohash = digits(String(i + 1));
    const id = await app.result("playlist_add_item", { title, infohash });
    const item = (await app.library.items.get(id))!;
    const content = app.library.items.figures(item).hashV2.slice(0, 16);
    if (health) app.library.visited.set(content, health);
  }
  const { results } = await app.result("search", { group_by_channels: 0 });
  const items = results.flatMap(({ items }: { items: Record<string, unknown>[] }) => items);
  assert.deepEqual(
    items.map(({ availability, status, bitrate, languages }: Record<string, unknown>) => [
      ...[availability, status, bitrate, languages],
    ]),
    [[0, 1, 0, []], [0, 1, 0, []], [0.75, 2, 400_000, ["fra"]]], // biome-ignore format: a table
  );
  assert.deepEqual([items[0].availability_updated_at, items[2].availability_updated_at], [50, 60]);
  const { playlist } = await app.result("playlist_get", { sort_by: "status" });
  assert.deepEqual(
    playlist.map(({ title, health }: { title: string; health?: { status: string } }) => [
      title,
      health?.status,
    ]),
    [["C alive", "alive"], ["B unknown", undefined], ["A dead", "dead"]], // biome-ignore format: a table
  );
  assert.deepEqual(playlist[0].health, {
    ...{
      status: "alive",
      availability: 0.75,
      checked_at: 60,
      start_ms: 900,
      speed: 500_000,
      bitrate: 400_000,
    },
    ...{ codecs: ["h264", "aac"], width: 1280, height: 720, languages: ["fra"], is_moving: true },
  });
  const page = await app.result("playlist_get", { sort_by: "status", offset: 1, limit: 1 });
  assert.deepEqual([page.total_items, page.playlist.length, page.playlist[0].title], [3, 1, "B unknown"]);
});
