import assert from "node:assert/strict";
import { test } from "node:test";
import { gunzipSync } from "node:zlib";
import { FAKE_TOKEN } from "../library/fake-library.ts";
import { fakeApp } from "./client.ts";

/** An app with an item that the fake guide knows, and one that it does not. */
async function guideApp() {
  const app = fakeApp();
  const url = (name: string) => ({
    transport: "http" as const,
    contentId: null,
    infohash: null,
    magnet: null,
    url: `http://x.example/${name}`,
  });
  const news = await app.library.items.add({ title: "News 24", content: url("a") });
  const other = await app.library.items.add({ title: "Other", content: url("b") });
  const control = async (method: string, parameters: Record<string, string | number> = {}) => {
    const given = Object.entries(parameters).map(([name, value]) => [name, String(value)]);
    const query = new URLSearchParams([
      ["api_version", "3"],
      ["method", method],
      ["token", FAKE_TOKEN],
      ...given,
    ]);
    return app.json(`/server/api?${query}`);
  };
  return { ...app, control, news, other };
}

test("get_epg_by_item_id: the programmes between two times; none for an item without a channel", async () => {
  const { control, news, other } = await guideApp();
  const { result } = await control("get_epg_by_item_id", { id: news.id, min_stop: 7_200, max_start: 14_400 });
  assert.deepEqual(
    result.map(({ start, stop }: { start: number; stop: number }) => [start, stop]),
    [
      [7_200, 10_800],
      [10_800, 14_400],
    ],
  );
  assert.deepEqual((await control("get_epg_by_item_id", { id: other.id })).result, []);
  assert.match((await control("get_epg_by_item_id", { id: 99 })).error.message, /99/);
});

test("playlist_get, search: show_epg adds the present programme and the next one", async () => {
  const { control } = await guideApp();
  const epgOf = (entries: { title?: string; name?: string; epg?: unknown[] }[], name: string) =>
    entries.find((entry) => (entry.title ?? entry.name) === name)!.epg;
  const { playlist } = (await control("playlist_get", { show_epg: 1 })).result;
  assert.equal(epgOf(playlist, "News 24")!.length, 2);
  assert.deepEqual(epgOf(playlist, "Other"), []);
  assert.equal(epgOf((await control("playlist_get")).result.playlist, "News 24"), undefined);
  const { results } = (await control("search", { query: "news", show_epg: 1 })).result;
  assert.equal(epgOf(results, "News 24")!.length, 2);
});

test("search_epg: the programmes with a text in their title, with the item that shows them", async () => {
  const { control, news } = await guideApp();
  const { programmes, is_complete } = (await control("search_epg", { query: "HOW" })).result;
  assert.equal(is_complete, true);
  assert.deepEqual(
    programmes.map((programme: { title: string; item_id: number; item_title: string }) => [
      programme.title,
      programme.item_id,
      programme.item_title,
    ]),
    [["Show", news.id, "News 24"]],
  );
  assert.deepEqual((await control("search_epg", { query: "film" })).result.programmes, []);
});

test("epg_source_add, _get_list, _update, _delete: manage the guides", async () => {
  const { control } = await guideApp();
  const { id } = (await control("epg_source_add", { url: "http://guide.example/x.xml" })).result;
  const { result } = await control("epg_source_get_list");
  assert.deepEqual(
    result.map(({ url, programmes }: { url: string; programmes: number }) => [url, programmes]),
    [["http://guide.example/x.xml", 2]],
  );
  assert.equal((await control("epg_source_update")).result.task_id, 1);
  assert.equal((await control("epg_source_delete", { id })).result, "ok");
  assert.deepEqual((await control("epg_source_get_list")).result, []);
});

test("get_epg_match, set_epg_match: show and change the channel of an item", async () => {
  const { control, other } = await guideApp();
  const before = (await control("get_epg_match", { id: other.id })).result;
  assert.deepEqual([before.channel, before.candidates[0].key], [null, "1/news"]);
  await control("set_epg_match", { id: other.id, channel: "1/news" });
  assert.equal((await control("get_epg_match", { id: other.id })).result.reason, "chosen");
  await control("set_epg_match", { id: other.id, channel: "auto" });
  assert.equal((await control("get_epg_match", { id: other.id })).result.channel, null);
});

test("get_epg_review: the channels without a certain guide, until the user has chosen", async () => {
  const { control, other, library } = await guideApp();
  await library.items.add({
    title: "Film",
    isLive: 0,
    content: { ...other.content, url: "http://x.example/c" },
  });
  const { result } = await control("get_epg_review");
  const channel = { key: "1/news", id: "news", names: ["News"] };
  assert.deepEqual(result, {
    channels: [{ item_id: other.id, title: "Other", channel: null, candidates: [channel] }],
    count: 1,
  });
  await control("set_epg_match", { id: other.id, channel: "none" });
  assert.deepEqual((await control("get_epg_review")).result, { channels: [], count: 0 });
  await control("set_epg_match", { id: other.id, channel: "auto" });
  assert.equal((await control("get_epg_review")).result.count, 1);
});

test("/epg.xml and /epg.xml.gz: the guide for players, closed to pages of other sites", async () => {
  const { call } = await guideApp();
  const plain = await call("/epg.xml");
  assert.match(plain.headers.get("content-type")!, /application\/xml/);
  assert.equal(await plain.text(), "<tv></tv>\n");
  const zipped = await call("/epg.xml.gz");
  assert.equal(zipped.headers.get("content-encoding"), null);
  assert.equal(gunzipSync(new Uint8Array(await zipped.arrayBuffer())).toString(), "<tv></tv>\n");
  const foreign = await call("/epg.xml", {
    headers: { origin: "http://evil.example", "sec-fetch-site": "cross-site" },
  });
  assert.equal(foreign.status, 403);
});

test("/guide/<item>-<start>.ics: a programme as a calendar file, closed to pages of other sites", async () => {
  const { call, library, news, other } = await guideApp();
  const path = `/guide/${news.id}-7200.ics`;
  const response = await call(path);
  assert.equal(response.headers.get("content-type"), "text/calendar; charset=utf-8");
  assert.match(response.headers.get("content-disposition")!, /filename="Show.ics"/);
  const lines = (await response.text()).replace(/\r\n /g, "").split("\r\n");
  assert.ok(lines.includes("DTSTART:19700101T020000Z") && lines.includes("DTEND:19700101T030000Z"));
  assert.ok(lines.includes("LOCATION:News 24"));
  assert.match(lines.find((line) => line.startsWith("URL:"))!, new RegExp(`/play/0/${news.id}$`));
  const foreign = { headers: { origin: "http://evil.example", "sec-fetch-site": "cross-site" } };
  assert.equal((await call(path, foreign)).status, 403);
  const missing = [`${news.id}-7201`, `${other.id}-7200`, "99-7200"];
  for (const name of missing) assert.equal((await call(`/guide/${name}.ics`)).status, 404, name);
  await library.items.update(news.id, { isEnabled: false });
  assert.equal((await call(path)).status, 404);
});
