import assert from "node:assert/strict";
import { test } from "node:test";
import type { Infohash } from "../../src/base/ids.ts";
import { fakeApp } from "./client.ts";

const USER = "username=viewer@example.org&password=correct%20horse";
const PATH = "viewer%40example.org/correct%20horse";
const HASH = "4".repeat(40) as Infohash;
const FOREIGN = { headers: { origin: "http://evil.example", "sec-fetch-site": "cross-site" } };
const INTERNET = {
  origin: { remote: { host: "8.8.8.8", port: 5_000 }, local: { host: "127.0.0.1", port: 6878 } },
};

async function xtreamApp(servesXtream = true) {
  const app = fakeApp({ dependencies: { servesXtream } });
  const content = { transport: "bt", contentId: null, magnet: null, url: null, infohash: HASH } as const;
  const add = (title: string, more: object) => app.library.items.add({ title, content, ...more });
  await add("News", { isLive: 1, tags: ["radio", "Info"], tvgId: "news.x" });
  await add("Sport", { isLive: 1, tvgLogo: "http://logo.example/s.png" });
  await add("News", { isLive: 1, tags: ["Info"] });
  await add("A film", { isLive: 0, tags: ["Films"], description: "About it" });
  const off = await add("Off", { isLive: 1 });
  await app.library.items.update(off.id, { isEnabled: false });
  // biome-ignore lint/suspicious/noExplicitAny: the tests read members by name.
  const api = async (query: string): Promise<any> =>
    (await app.call(`/player_api.php?${USER}${query}`)).json();
  return { ...app, api };
}

test("player_api.php: describes the user and the server; the answer reports a wrong password", async () => {
  const { api, call } = await xtreamApp();
  const { user_info: user, server_info: server } = await api("");
  assert.deepEqual([user.auth, user.status, user.username], [1, "Active", "viewer@example.org"]);
  assert.deepEqual([server.url, server.port, server.timezone], ["127.0.0.1", "6878", "UTC"]);
  assert.match(server.time_now, /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/);
  for (const query of ["", "?username=x", "?username=viewer@example.org&password=x&action=get_live_streams"])
    assert.deepEqual(await (await call(`/player_api.php${query}`)).json(), { user_info: { auth: 0 } });
});

test("player_api.php: one stream for each channel, in categories with stable ids", async () => {
  const { api } = await xtreamApp();
  const categories = await api("&action=get_live_categories");
  assert.deepEqual(
    categories.map(({ category_name }: { category_name: string }) => category_name),
    ["Info", "Other"],
  );
  const streams = await api("&action=get_live_streams");
  assert.deepEqual(
    streams.map(({ num, stream_id, name, category_id }: Record<string, unknown>) => [
      num,
      stream_id,
      name,
      category_id,
    ]),
    [
      [1, 1, "News", categories[0].category_id],
      [2, 2, "Sport", categories[1].category_id],
    ],
  );
  assert.deepEqual(
    [streams[0].epg_channel_id, streams[1].stream_icon],
    ["news.x", "http://logo.example/s.png"],
  );
  const [only, ...others] = await api(`&action=get_live_streams&category_id=${categories[1].category_id}`);
  assert.deepEqual([only.name, others], ["Sport", []]);
});

test("player_api.php: films with their description; no series; an unknown action returns the profile", async () => {
  const { api } = await xtreamApp();
  const [film] = await api("&action=get_vod_streams");
  assert.deepEqual([film.name, film.stream_type, film.container_extension], ["A film", "movie", "mp4"]);
  assert.equal((await api("&action=get_vod_categories"))[0].category_name, "Films");
  const { info, movie_data } = await api(`&action=get_vod_info&vod_id=${film.stream_id}`);
  assert.deepEqual([info.plot, movie_data.stream_id], ["About it", film.stream_id]);
  // Clients read these without a check.
  assert.deepEqual([film.title, info.backdrop_path, info.tmdb_id], ["A film", [], ""]);
  assert.deepEqual(await api("&action=get_series"), []);
  assert.equal((await api("&action=get_profile")).user_info.auth, 1);
  // Clients then report that there is no such series or film.
  assert.equal((await api("&action=get_series_info&series_id=1")).info.name, null);
  assert.deepEqual((await api("&action=get_vod_info&vod_id=99")).info, []);
});

test("player_api.php: the programmes of a channel, in Base64", async () => {
  const { api } = await xtreamApp();
  const { epg_listings: short } = await api("&action=get_short_epg&stream_id=1&limit=3");
  assert.equal(short.length, 3);
  assert.deepEqual([atob(short[0].title), short[0].now_playing, short[1].now_playing], ["Show", 1, 0]);
  assert.match(short[0].start, /^\d{4}-\d\d-\d\d \d\d:00:00$/);
  assert.equal(short[0].stop_timestamp, short[1].start_timestamp);
  assert.equal(short[0].end, short[0].stop_timestamp);
  const { epg_listings: long } = await api("&action=get_simple_data_table&stream_id=1");
  assert.match(long[0].end, /^\d{4}-\d\d-\d\d /);
  assert.deepEqual((await api("&action=get_simple_data_table&stream_id=2")).epg_listings, []);
});

test("get.php, xmltv.php: the exported list and guide", async () => {
  const { call, library } = await xtreamApp();
  const list = await call(`/get.php?${USER}&type=m3u_plus&output=m3u8`);
  assert.match(await list.text(), /^#EXTM3U/);
  assert.deepEqual([library.exported[0]?.protocol, library.exported[0]?.format], ["hls", "m3u"]);
  assert.match(await (await call(`/xmltv.php?${USER}`)).text(), /^<tv>/);
  for (const path of ["/get.php", "/xmltv.php?username=x&password=y"])
    assert.equal((await call(path)).status, 401, path);
});

test("/live, /movie: play as the play links do, with the right password only", async () => {
  const { call } = await xtreamApp();
  for (const path of [`/live/${PATH}/2.ts`, `/${PATH}/2.ts`, `/${PATH}/2`, `/movie/${PATH}/4.mkv`]) {
    const response = await call(path);
    assert.deepEqual([response.status, response.headers.get("location")?.split("/")[4]], [302, "r"], path);
  }
  assert.match((await call(`/live/${PATH}/2.m3u8`)).headers.get("location")!, /\/ace\/m\//);
  assert.equal((await call("/live/viewer@example.org/x/2.ts")).status, 401);
  assert.equal((await call(`/live/${PATH}/x.ts`)).status, 404);
  assert.equal((await call(`/live/${PATH}/99.ts`)).status, 404);
});

test("the API is off by default, and closed to pages of other sites and to the Internet", async () => {
  const off = await xtreamApp(false);
  assert.equal((await off.call(`/player_api.php?${USER}`)).status, 404);
  const { call } = await xtreamApp();
  for (const path of [`/player_api.php?${USER}`, `/get.php?${USER}`, `/live/${PATH}/2.ts`, `/${PATH}/2.ts`])
    for (const caller of [FOREIGN, INTERNET]) assert.equal((await call(path, caller)).status, 403, path);
  // A page must not learn whether a password is right.
  for (const path of ["/live/viewer@example.org/x/2.ts", "/movie/viewer@example.org/x/4.mkv"])
    assert.equal((await call(path, FOREIGN)).status, 403, path);
});

test("the groups of an account: its lists, programmes, exports and streams contain nothing else", async () => {
  const { api, call, library } = await xtreamApp();
  await library.accounts.setLimits("viewer@example.org", { maxStreams: 0, groups: ["Info", "Films"] });
  const names = async (action: string) =>
    (await api(`&action=${action}`)).map(
      ({ name, category_name }: Record<string, string>) => name ?? category_name,
    );
  assert.deepEqual(await names("get_live_categories"), ["Info"]);
  assert.deepEqual(await names("get_live_streams"), ["News"]);
  assert.deepEqual(await names("get_vod_streams"), ["A film"]);
  assert.equal((await call(`/player_api.php?${USER}&action=get_short_epg&stream_id=2`)).status, 404);
  assert.equal((await call(`/live/${PATH}/2.ts`)).status, 404);
  assert.equal((await call(`/movie/${PATH}/4.mkv`)).status, 302);
  await call(`/get.php?${USER}&type=m3u_plus&format=json`);
  const [exported] = library.exported;
  assert.deepEqual([exported?.query.label, exported?.format], [["Info", "Films"], "m3u"]);
  const item = (await library.items.get(1))!;
  assert.equal(exported?.linkOf?.(item), `http://127.0.0.1:6878/live/${PATH}/1.ts`);
  await library.accounts.setLimits("viewer@example.org", { maxStreams: 0, groups: [] });
  await call(`/get.php?${USER}`);
  assert.deepEqual([library.exported[1]?.query.label, library.exported[1]?.linkOf], [undefined, undefined]);
});

test("the stream limit of an account: a further start ends the oldest stream, of the same device if it has one", async () => {
  const { api, call, library, engine } = await xtreamApp();
  const connections = async () => {
    const { user_info: user } = await api("");
    return [user.active_cons, user.max_connections];
  };
  assert.deepEqual(await connections(), ["0", "8"]);
  await library.accounts.setLimits("viewer@example.org", { maxStreams: 2, groups: [] });
  const start = async (device: string, id: number, ending = "ts") => {
    const origin = { remote: { host: device, port: 5_000 }, local: { host: "127.0.0.1", port: 6878 } };
    const location = (await call(`/live/${PATH}/${id}.${ending}`, { origin })).headers.get("location")!;
    const [, infohash, key] = /([0-9a-f]{40})\/([0-9a-f]{32})/.exec(location)!;
    return () => engine.session(infohash as Infohash, key!) !== undefined;
  };
  const living = [await start("127.0.0.7", 4), await start("127.0.0.8", 2)];
  assert.deepEqual(await connections(), ["2", "2"]);
  living.push(await start("127.0.0.8", 4, "m3u8"));
  assert.deepEqual(
    living.map((lives) => lives()),
    [true, false, true],
  );
  living.push(await start("127.0.0.9", 2));
  assert.deepEqual(
    living.map((lives) => lives()),
    [false, false, true, true],
  );
  assert.deepEqual(await connections(), ["2", "2"]);
});
