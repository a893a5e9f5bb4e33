import assert from "node:assert/strict";
import { test } from "node:test";
import { LOCAL } from "./client.ts";
import { controlClient } from "./control-client.ts";
import { fakeDesk, fakeWish } from "./fake-desk.ts";

const NEIGHBOUR = {
  remote: { host: "192.168.1.77", port: 1 },
  local: { host: "192.168.1.5", port: 6878 },
};

function client() {
  const broadcasts = fakeDesk();
  return { ...controlClient({ house: { broadcasts } }), broadcasts };
}

test("broadcast_start: hands over what was said, and tells what the stream is called", async () => {
  const { json, query, broadcasts } = client();
  const words = query("broadcast_start", {
    source: "http://tv.example/news.ts",
    name: "news",
    title: "News",
    private: 1,
    upload_limit: 1000,
    bitrate: 8_000_000,
    loop: 0,
    standby: 1,
    hls: "http://tv.example/a.m3u8",
  });
  for (const tracker of ["http://a.example/", "udp://b.example:1"]) words.append("tracker", tracker);
  words.append("relay", "1.2.3.4:5");
  const { result, error } = await json(`/server/api?${words}`);
  assert.equal(error, null);
  assert.deepEqual(broadcasts.wishes.get("news"), {
    ...fakeWish("news"),
    source: "http://tv.example/news.ts",
    title: "News",
    isStandby: true,
    trackers: ["http://a.example/", "udp://b.example:1"],
    relays: ["1.2.3.4:5"],
    isPrivate: true,
    uploadLimit: 1000,
    bitsPerSecond: 8_000_000,
    manifests: ["http://tv.example/a.m3u8"],
  });
  assert.deepEqual(
    [result.name, result.status, result.infohash, result.content_id, result.bitrate, result.head],
    ["news", "good", "1".repeat(40), "2".repeat(40), 217_003, 14_283],
  );
  assert.match(result.link, /^sluice:\?magnet=/);
});

test("broadcast_start: no source, two of them, and rates below 0 are told", async () => {
  const { error } = client();
  assert.deepEqual(await error("broadcast_start"), {
    message: "missing parameter: source: expected a URL, udp://… or a file; or test_pattern=1",
    code: 102,
  });
  assert.match(
    (await error("broadcast_start", { source: "x", test_pattern: 1 })).message,
    /^bad parameter: test_p/,
  );
  assert.equal((await error("broadcast_start", { test_pattern: 1, upload_limit: -1 })).code, 103);
});

test("broadcast_list: a login in the URL of the source is told to nobody", async () => {
  const { result, broadcasts } = client();
  await broadcasts.start({ ...fakeWish("door"), source: "http://admin:hunter2@cam.example:81/a.ts" });
  await broadcasts.start({ ...fakeWish("yard"), source: "https://cam.example/b.ts?token=hunter2" });
  await broadcasts.start({ ...fakeWish("film"), source: "/media/film.ts" });
  const list: { source: string }[] = (await result("broadcast_list")).broadcasts;
  assert.deepEqual(
    list.map(({ source }) => source),
    ["http://cam.example:81/a.ts", "https://cam.example/b.ts", "/media/film.ts"],
  );
});

test("broadcast_list and broadcast_get_status: what is on air, and what cannot be and why", async () => {
  const { result, error, broadcasts } = client();
  await broadcasts.start(fakeWish("news"));
  await broadcasts.start(fakeWish("away"));
  const list = (await result("broadcast_list")).broadcasts;
  assert.deepEqual(
    list.map((each: { name: string; status: string }) => [each.name, each.status]),
    [
      ["news", "good"],
      ["away", "failed"],
    ],
  );
  assert.deepEqual(await result("broadcast_get_status", { name: "news" }), list[0]);
  assert.deepEqual([list[1].infohash, list[1].remark], [null, "nothing answers at http://x/"]);
  assert.deepEqual(await error("broadcast_get_status", { name: "x" }), {
    message: "unknown broadcast: x; see broadcast_list",
    code: 207,
  });
});

test("broadcast_stop: ends it, and says where there is none of that name", async () => {
  const { result, error, broadcasts } = client();
  await broadcasts.start(fakeWish("news"));
  assert.equal(await result("broadcast_stop", { name: "news" }), "ok");
  assert.equal((await error("broadcast_stop", { name: "news" })).code, 207);
});

test("broadcast_start and broadcast_stop: this host alone, with the token; a neighbour with it may look", async () => {
  const { json, query, broadcasts } = client();
  await broadcasts.start(fakeWish("news"));
  const ask = (method: string, values: Record<string, string>, origin = LOCAL) =>
    json(`/server/api?${query(method, values)}`, { origin, host: `${origin.local.host}:6878` });
  const start = { source: "/etc/passwd", name: "secrets" };
  assert.match((await ask("broadcast_start", start, NEIGHBOUR)).error.message, /^access denied/);
  assert.match((await ask("broadcast_stop", { name: "news" }, NEIGHBOUR)).error.message, /^access denied/);
  assert.equal((await ask("broadcast_list", {}, NEIGHBOUR)).result.broadcasts.length, 1);
  assert.equal((await ask("broadcast_start", { ...start, token: "" })).error.code, 104);
  assert.deepEqual([...broadcasts.wishes.keys()], ["news"]);
});

test("broadcast methods: an engine without broadcasting says so", async () => {
  const { result, error } = controlClient();
  assert.deepEqual(await result("broadcast_list"), { broadcasts: [] });
  assert.match((await error("broadcast_start", { test_pattern: 1 })).message, /without broadcasting/);
});
