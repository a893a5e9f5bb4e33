import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { ApiError, EngineApi, problemText } from "../../src/web/page/parts/api.js";
import { agoText, untilText } from "../../src/web/page/parts/figures.js";
import { isList } from "../../src/web/page/watch/playlist-add.js";
import { exportSource, readItem } from "../../src/web/page/watch/playlist-source.js";

const ANY = {
  name: "",
  category: "",
  tag: "",
  isFavorite: false,
  externalPlaylistId: undefined,
  order: "added",
};

/** Creates the response of a `fetch` call. */
type Answer = (url: string, init: RequestInit | undefined) => Response;

describe("the playlist page and the responses of the engine", () => {
  const real = globalThis.fetch;
  let answer: Answer = () => new Response();
  before(() => {
    globalThis.fetch = ((url: string, init?: RequestInit) =>
      Promise.resolve(answer(url, init))) as typeof fetch;
    Object.assign(globalThis, { location: { origin: "http://here:1", hostname: "here" } });
  });
  after(() => {
    globalThis.fetch = real;
    Reflect.deleteProperty(globalThis, "location");
  });

  test("readItem: lists each group once, ignoring case, and loads icons only from the engine", () => {
    const item = readItem({
      id: 7,
      title: "a",
      subcategory: "sport",
      tags: ["Sport", "HD"],
      icons: [{ url: "http://elsewhere/logo.png" }],
    });
    assert.deepEqual(item.groups, ["Sport", "HD"]);
    assert.equal(item.iconPath, "server/api?api_version=3&method=get_channel_icon&id=7");
    const image = `image/${"a".repeat(40)}`;
    assert.equal(readItem({ id: 7, icons: [{ url: `http://here:1/${image}` }] }).iconPath, image);
    assert.notEqual(readItem({ id: 7, icons: [{ url: `http://evil/${image}` }] }).iconPath, image);
  });

  test("exportSource: reads one page of the export, with the filter as parameters", async () => {
    const asked: string[] = [];
    answer = (url) => {
      asked.push(url);
      return Response.json({ total_items: 90_000, playlist: [{ id: 7, title: "Ärger", is_favorite: true }] });
    };
    const { signal } = new AbortController();
    const filter = { ...ANY, name: "a&b", tag: "HD", isFavorite: true, order: "title" };
    const page = await exportSource().page(filter, 50, 50, signal);
    assert.deepEqual([page.total, page.items.map(({ title }) => title)], [90_000, ["Ärger"]]);
    assert.deepEqual(asked, [
      "playlist/get?format=json&offset=50&limit=50&sort=true&name=a%26b&subcategory=HD&is_favorite=true&show_epg=true",
    ]);
    answer = () => new Response("access denied\n", { status: 403 });
    await assert.rejects(exportSource().page(ANY, 0, 50, signal), /^Error: access denied$/);
  });

  test("EngineApi: sends the token in the body, and gets a new one if it was renewed", async () => {
    let token = "first-token";
    const seen: string[] = [];
    answer = (url, init) => {
      assert.ok(!url.includes("token="), url);
      const method = new URL(url, "http://here").searchParams.get("method");
      if (method === "get_api_access_token") return Response.json({ result: { token }, error: null });
      const given = new URLSearchParams(String(init?.body)).get("token");
      seen.push(`${method} ${given}`);
      return given === token
        ? Response.json({ result: "ok", error: null })
        : Response.json({ error: { message: "wrong access token", code: 105 } });
    };
    const api = new EngineApi();
    assert.equal(await api.enter(), "full");
    assert.equal(await api.call("playlist_clear"), "ok");
    token = "second-token";
    assert.equal(await api.call("playlist_clear", { ids: ["a"], value: false }), "ok");
    assert.deepEqual(seen, [
      "playlist_clear first-token",
      "playlist_clear first-token",
      "playlist_clear second-token",
    ]);
  });

  test("EngineApi: reports a response that is not JSON", async () => {
    answer = () => new Response("<html>", { status: 502 });
    await assert.rejects(new EngineApi().call("get_status"), /status 502/);
  });
});

test("problemText: returns a message for the user", () => {
  assert.match(problemText(new TypeError("Failed to fetch")), /does not answer/);
  assert.match(problemText(new ApiError("access denied", 0)), /engine's computer/);
  assert.equal(problemText(new ApiError("unknown item: 5", 200)), "Unknown item: 5");
});

test("isList: distinguishes playlists from transport files by name and first bytes", async () => {
  const file = (name: string, text: string) => new File([text], name);
  assert.equal(await isList(file("a.M3U8", "anything")), true);
  assert.equal(await isList(file("a.torrent", "anything")), false);
  assert.equal(await isList(file("a", "d8:announce3:abce")), false);
  assert.equal(await isList(file("a", "#EXTM3U\n")), true);
});

test("agoText and untilText: format relative times", () => {
  assert.equal(agoText(100, 105), "just now");
  assert.equal(agoText(1000, 1000 + 5 * 60), "5 minutes ago");
  assert.equal(agoText(2000, 1000), "just now");
  assert.equal(untilText(1000 + 2 * 86_400, 1000), "in 2 days");
  assert.equal(untilText(500, 1000), "soon");
});
