import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { ApiError, EngineApi, problemText } from "../../src/web/page/api.js";
import { isList } from "../../src/web/page/playlist-add.js";
import { exportSource, readItem } from "../../src/web/page/playlist-source.js";
import { agoText, untilText } from "../../src/web/page/playlist-times.js";

const ANY = {
  name: "",
  category: "",
  tag: "",
  isFavorite: false,
  externalPlaylistId: undefined,
  isByTitle: false,
};

/** What the page's `fetch` is answered with. */
type Answer = (url: string, init: RequestInit | undefined) => Response;

describe("what the playlist page makes of the engine's answers", () => {
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

  test("readItem shows each group once, whatever its case, and loads pictures from the engine alone", () => {
    const item = readItem({
      id: 7,
      title: "a",
      subcategory: "sport",
      tags: ["Sport", "HD"],
      icons: [{ url: "http://elsewhere/logo.png" }],
    });
    assert.deepEqual(item.groups, ["Sport", "HD"]);
    assert.equal(item.iconPath, "/server/api?api_version=3&method=get_channel_icon&id=7");
    const image = `/image/${"a".repeat(40)}`;
    assert.equal(readItem({ id: 7, icons: [{ url: `http://here:1${image}` }] }).iconPath, image);
    assert.notEqual(readItem({ id: 7, icons: [{ url: `http://evil${image}` }] }).iconPath, image);
  });

  test("exportSource reads a list that comes in pieces, and looks through it", async () => {
    const lines = ["Zoo 10", "zoo 9", "Ärger"].map((title, i) =>
      JSON.stringify({
        id: i + 1,
        title,
        tags: ["A"],
        category: i === 0 ? "tv" : null,
        is_favorite: i === 1,
      }),
    );
    const bytes = new TextEncoder().encode(`{"playlist":[\n${lines.join(",\n")}]}\n`);
    answer = () =>
      new Response(
        new ReadableStream({
          start(controller) {
            for (let at = 0; at < bytes.length; at += 7) controller.enqueue(bytes.slice(at, at + 7));
            controller.close();
          },
        }),
      );
    const source = exportSource();
    const titles = async (filter: Partial<typeof ANY>, offset = 0, limit = 50) => {
      const { signal } = new AbortController();
      const page = await source.page({ ...ANY, ...filter }, offset, limit, signal);
      return [page.total, ...page.items.map(({ title }) => title)];
    };
    assert.deepEqual(await titles({}), [3, "Zoo 10", "zoo 9", "Ärger"]);
    assert.deepEqual(await titles({ isByTitle: true }, 1, 1), [3, "zoo 9"]);
    assert.deepEqual(await titles({ name: "arg" }), [1, "Ärger"]);
    assert.deepEqual(await titles({ category: "tv" }), [1, "Zoo 10"]);
    assert.deepEqual(await titles({ isFavorite: true }), [1, "zoo 9"]);
    assert.deepEqual(await titles({ tag: "B" }), [0]);
  });

  test("exportSource stops at a line that never ends, and at more items than a device holds", async () => {
    const { signal } = new AbortController();
    answer = () => new Response(`{"playlist":[\n${"x".repeat(300_000)}`);
    await assert.rejects(exportSource().page(ANY, 0, 50, signal), /cannot be read/);
    let sent = 0;
    answer = () =>
      new Response(
        new ReadableStream({
          pull(controller) {
            sent++;
            const line = `{"id":${sent},"title":"t"},\n`;
            controller.enqueue(new TextEncoder().encode(line.repeat(1000)));
          },
        }),
      );
    const page = await exportSource().page(ANY, 0, 50, signal);
    assert.equal(page.total, 20_000);
    assert.equal(page.isCut, true);
    assert.ok(sent < 30, `${sent} chunks were taken`);
  });

  test("EngineApi sends the token in the body, and gets a new one where it was renewed", async () => {
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

  test("EngineApi tells what is no answer of ours", async () => {
    answer = () => new Response("<html>", { status: 502 });
    await assert.rejects(new EngineApi().call("get_status"), /answered 502/);
  });
});

test("problemText is for the user", () => {
  assert.match(problemText(new TypeError("Failed to fetch")), /does not answer/);
  assert.match(problemText(new ApiError("access denied", 0)), /own computer/);
  assert.equal(problemText(new ApiError("item is locked: 5", 206)), "Item is locked: 5");
});

test("isList tells playlists from transport files by name and by first bytes", async () => {
  const file = (name: string, text: string) => new File([text], name);
  assert.equal(await isList(file("a.M3U8", "anything")), true);
  assert.equal(await isList(file("a.torrent", "anything")), false);
  assert.equal(await isList(file("a", "d8:announce3:abce")), false);
  assert.equal(await isList(file("a", "#EXTM3U\n")), true);
});

test("agoText and untilText are words", () => {
  assert.equal(agoText(100, 105), "just now");
  assert.equal(agoText(1000, 1000 + 5 * 60), "5 minutes ago");
  assert.equal(agoText(2000, 1000), "just now");
  assert.equal(untilText(1000 + 2 * 86_400, 1000), "in 2 days");
  assert.equal(untilText(500, 1000), "soon");
});
