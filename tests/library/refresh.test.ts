import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { SluiceError } from "../../src/base/errors.ts";
import { encodeUtf8 } from "../../src/base/utf8.ts";
import type { KeyValueStore } from "../../src/runtime/contract.ts";
import { openMemory } from "../../src/runtime/kv-memory.ts";
import { seededRandom } from "../seeded-random.ts";
import { openExternal } from "./external-parts.ts";
import { ListServer, listOf } from "./list-server.ts";
import { until } from "./until.ts";

const URL_A = "http://lists.example/a.m3u";

/** A served list that the test can replace. */
async function listed(channels: readonly string[]) {
  const opened = await openExternal();
  const say = (now: readonly string[], header?: string) =>
    opened.server.answers.set(URL_A, { body: listOf(now, header) });
  say(channels);
  const id = await opened.add(URL_A);
  const find = async (title: string) => {
    const found = (await opened.items.query({ name: title })).items.filter((item) => item.title === title);
    assert.equal(found.length, 1, `one ${title}`);
    return found[0]!;
  };
  return { ...opened, id, say, find, again: () => opened.refresh(id) };
}

test("refresh: a renamed channel or one with a new link keeps favorite, flags and edits", async () => {
  const { items, say, again, find } = await listed([
    "one http://t.example/1?k=a",
    "two http://t.example/2?k=a",
    "three",
  ]);
  const one = await find("one");
  const two = await find("two");
  await items.update(one.id, { isFavorite: true, tags: ["mine"] });
  await items.update(two.id, { isEnabled: false, title: "My two" });
  // New tokens everywhere, then new titles on the same links.
  say(["one http://t.example/1?k=b", "two http://t.example/2?k=b", "three"]);
  await again();
  say(["ONE-HD http://t.example/1?k=b", "two-HD http://t.example/2?k=b", "three"]);
  const task = await again();
  const first = (await items.get(one.id))!;
  assert.deepEqual([first.title, first.isFavorite, first.tags], ["ONE-HD", true, ["mine"]]);
  assert.equal(first.content.url, "http://t.example/1?k=b");
  const second = (await items.get(two.id))!;
  assert.deepEqual([second.title, second.isEnabled], ["My two", false]);
  assert.equal(second.content.url, "http://t.example/2?k=b");
  assert.match(task.message, /3 items: 0 new, 2 changed, 0 removed|3 items: 0 new, 1 changed, 0 removed/);
});

test("refresh: ids stay the same over many random refreshes", async () => {
  for (const seed of [1, 2, 3]) {
    const random = seededRandom(seed);
    const { items, say, again } = await listed(["c0"]);
    const idOf = new Map<string, number>();
    let token = 0;
    for (let round = 0; round < 15; round++) {
      token += random() < 0.4 ? 1 : 0;
      const names = Array.from({ length: 40 }, (_, i) => `c${i}`).filter(() => random() < 0.85);
      if (!names.includes("c0")) names.push("c0");
      names.sort(() => random() - 0.5);
      say(names.map((name) => `${name} http://t.example/${name}?k=${token}`));
      assert.equal((await again()).state, "done", `seed ${seed} round ${round}`);
      const now = new Map((await items.query({})).items.map(({ title, id }) => [title, id]));
      assert.deepEqual([...now.keys()].sort(), [...names].sort(), `seed ${seed} round ${round}`);
      // Entries of the previous list keep their items; removed ones were deleted.
      const kept = [...idOf].filter(([title]) => now.has(title));
      assert.ok(round === 0 || kept.length > 0, `seed ${seed} round ${round}`);
      for (const [title, id] of kept) assert.equal(now.get(title), id, `seed ${seed}: ${title}`);
      idOf.clear();
      for (const [title, id] of now) idOf.set(title, id);
    }
  }
});

test("refresh: locked items stay unchanged, and are matched again when they return", async () => {
  const { items, say, again, find } = await listed(["one", "two"]);
  const one = await find("one");
  await items.update(one.id, { isLocked: true });
  say(["one http://other.example/x", "two"]);
  await again();
  assert.equal((await items.get(one.id))?.content.url, "http://tv.example/one");
  say(["two"]);
  await again();
  assert.equal((await items.query({})).total, 2);
  say(["one http://third.example/x", "two"]);
  await again();
  assert.equal((await items.query({})).total, 2);
  assert.equal((await items.get(one.id))?.content.url, "http://tv.example/one");
});

test("refresh: permanently deleted items do not return, even with a new link", async () => {
  const { items, say, again, find, titles } = await listed(["one", "two"]);
  await items.delete([(await find("one")).id]);
  say(["one http://t.example/new", "two"]);
  await again();
  assert.deepEqual(await titles(), ["two"]);
  await items.clearTrash();
  say(["one http://t.example/newer", "two"]);
  await again();
  assert.deepEqual(await titles(), ["two"]);
  assert.equal((await items.query({ state: "trash" })).total, 0);
});

test("refresh: link and title together identify an item", async () => {
  const { titles } = await listed([
    "a http://t.example/1",
    "b http://t.example/1",
    "a http://t.example/1",
    "a http://t.example/2",
  ]);
  assert.deepEqual(await titles(), ["a", "b", "a"]);
});

const MANY = Array.from({ length: 40 }, (_, i) => `c${i}`);

test("refresh: an invalid or empty list fails and removes nothing", async () => {
  const { server, again, items, playlists, id } = await listed(MANY);
  const before = (await items.query({})).items;
  for (const [body, problem] of [
    ["<!doctype html><html><body>Sign in</body></html>", /page/i],
    ["#EXTM3U\n", /no playable entry/],
    ["#EXTM3U\n#EXTINF:-1,x\nrtmp://a/b\n", /no playable entry \(1 have unsupported links\)/],
    ["", /playlist/],
    ["#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\na.ts\n", /single stream/],
  ] as const) {
    server.answers.set(URL_A, { body });
    // Twice: an empty list is never accepted.
    for (let i = 0; i < 2; i++) {
      const task = await again();
      assert.equal(task.state, "failed", body);
      assert.match(task.problem!, problem);
      assert.match((await playlists.get(id))!.problem!, problem);
      assert.deepEqual((await items.query({})).items, before);
    }
  }
  server.answers.set(URL_A, { body: listOf(MANY) });
  assert.equal((await again()).state, "done");
  assert.equal((await playlists.get(id))?.problem, null);
});

test("refresh: a truncated list removes nothing", async () => {
  const { server, again, items } = await listed(MANY);
  const before = (await items.query({})).items;
  let pulls = 0;
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (pulls++ === 0) controller.enqueue(encodeUtf8(listOf(["x", "y"])));
      else controller.error(new SluiceError("url_unreachable", "the connection broke"));
    },
  });
  server.answers.set(URL_A, { body });
  assert.match((await again()).problem!, /the connection broke/);
  assert.deepEqual((await items.query({})).items, before);
});

test("shrunken-list: a list that lost more than half is accepted the second time", async () => {
  const { server, say, again, items, playlists, id } = await listed(MANY);
  say(MANY.slice(0, 19));
  assert.match((await again()).problem!, /19 entries instead of 40/);
  assert.equal((await items.query({})).total, 40);
  // A complete list in between resets the check.
  say(MANY);
  await again();
  say(MANY.slice(0, 19));
  await again();
  assert.equal((await items.query({})).total, 40);
  server.answers.set(URL_A, { headers: { etag: '"x"' }, body: listOf(MANY.slice(0, 19)) });
  assert.equal((await again()).state, "done");
  assert.equal((await items.query({})).total, 19);
  assert.equal((await playlists.get(id))?.problem, null);
});

test("refresh: reads gzip lists and stores guides for exports", async () => {
  const { server, again, titles, playlists, id } = await listed(["one"]);
  const text = listOf(["one", "two"], '#EXTM3U x-tvg-url="http://g.example/a.xml,http://g.example/b.xml"');
  const packed = new Uint8Array(gzipSync(encodeUtf8(text)));
  server.answers.set(URL_A, { body: new Blob([packed]).stream() });
  await again();
  assert.deepEqual(await titles(), ["one", "two"]);
  const guides = ["http://g.example/a.xml", "http://g.example/b.xml"];
  assert.deepEqual(playlists.guides(id), guides);
  assert.deepEqual(playlists.guides(), guides);
});

/** A store that drops a commit and all later ones, as if the process was killed. */
function mortal(store: KeyValueStore) {
  const life = { commits: Number.POSITIVE_INFINITY };
  const killed: KeyValueStore = {
    ...store,
    commit: async (change) => {
      if (life.commits-- <= 0) throw new Error("killed");
      return store.commit(change);
    },
  };
  return { life, killed };
}

test("refresh: the next start repeats a refresh killed at any commit, and keeps the user's changes", async () => {
  const channels = Array.from({ length: 1200 }, (_, i) => `c${i} http://t.example/${i}?k=1`);
  const changed = channels
    .slice(100)
    .map((channel) => channel.replace("k=1", "k=2"))
    .concat(["new1", "new2"]);
  for (let commits = 0; ; commits++) {
    const store = openMemory();
    const server = new ListServer();
    server.answers.set(URL_A, { headers: { etag: '"1"' }, body: listOf(channels) });
    const { life, killed } = mortal(store);
    const first = await openExternal({ store: killed, server });
    const id = await first.add(URL_A);
    const favorite = (await first.items.query({ name: "c777" })).items[0]!;
    await first.items.update(favorite.id, { isFavorite: true });
    server.answers.set(URL_A, ({ headers }) =>
      headers?.["if-none-match"] === '"2"'
        ? { status: 304 }
        : { headers: { etag: '"2"' }, body: listOf(changed) },
    );
    life.commits = commits;
    const task = await first.refresh(id);
    first.playlists.close();

    const second = await openExternal({ store, server, clock: first.clock });
    await second.idle();
    const playlist = (await second.playlists.get(id))!;
    if (playlist.itemCount !== changed.length) {
      // Nothing has changed; the list is still due.
      assert.equal(playlist.itemCount, channels.length, `killed at commit ${commits}`);
      await second.refresh(id);
    }
    const { items } = await second.items.query({ sort: "added" });
    assert.equal(items.length, changed.length, `killed at commit ${commits}`);
    assert.ok(
      items.every(({ content }) => !content.url?.endsWith("k=1")),
      `killed at commit ${commits}`,
    );
    const kept = (await second.items.get(favorite.id))!;
    assert.deepEqual(
      [kept.title, kept.isFavorite, kept.content.url],
      ["c777", true, "http://t.example/777?k=2"],
    );
    await second.close();
    if (task.state === "done") {
      assert.ok(commits > 5, `${commits} commits`);
      return;
    }
  }
});

test("refresh: the next start fetches a list added just before a kill", async () => {
  const store = openMemory();
  const server = new ListServer();
  server.answers.set(URL_A, () => new Promise(() => {}));
  const first = await openExternal({ store, server });
  const usual = { category: "", name: "b", updateInterval: 0, login: "", password: "" };
  await first.playlists.add(
    { type: "content", url: URL_A, ...usual },
    { updateNow: true, allowPrivateUrls: false },
  );
  await until(() => server.asked.length === 1);
  server.answers.set(URL_A, { body: listOf(["one"]) });
  const second = await openExternal({ store, server });
  await second.idle();
  assert.deepEqual(await second.titles(), ["one"]);
});
