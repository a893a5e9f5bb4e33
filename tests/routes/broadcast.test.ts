import assert from "node:assert/strict";
import { test } from "node:test";
import { LOCAL } from "./client.ts";
import { controlClient } from "./control-client.ts";
import { fakeBroadcastOptions, fakeBroadcastService } from "./fake-broadcasts.ts";

const NEIGHBOUR = {
  remote: { host: "192.168.1.77", port: 1 },
  local: { host: "192.168.1.5", port: 6878 },
};

function client() {
  const broadcasts = fakeBroadcastService();
  return { ...controlClient({ dependencies: { broadcasts } }), broadcasts };
}

test("broadcast_start: passes its parameters to the service, and returns the links of the stream", async () => {
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
    successor: "/next.sluice",
    hls: "http://tv.example/a.m3u8",
  });
  for (const tracker of ["http://a.example/", "udp://b.example:1"]) words.append("tracker", tracker);
  words.append("relay", "1.2.3.4:5");
  const { result, error } = await json(`/server/api?${words}`);
  assert.equal(error, null);
  assert.deepEqual(broadcasts.records.get("news"), {
    ...fakeBroadcastOptions("news"),
    source: "http://tv.example/news.ts",
    title: "News",
    isStandby: true,
    successorPath: "/next.sluice",
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

test("broadcast_start: refuses a request without a source, with two sources, or with a negative rate", async () => {
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

test("broadcast_list: the source URL contains no login", async () => {
  const { result, broadcasts } = client();
  await broadcasts.start({
    ...fakeBroadcastOptions("door"),
    source: "http://admin:hunter2@cam.example:81/a.ts",
  });
  await broadcasts.start({
    ...fakeBroadcastOptions("yard"),
    source: "https://cam.example/b.ts?token=hunter2",
  });
  await broadcasts.start({ ...fakeBroadcastOptions("film"), source: "/media/film.ts" });
  const list: { source: string }[] = (await result("broadcast_list")).broadcasts;
  assert.deepEqual(
    list.map(({ source }) => source),
    ["http://cam.example:81/a.ts", "https://cam.example/b.ts", "/media/film.ts"],
  );
});

test("broadcast_list and broadcast_get_status: report which broadcasts are on air, and why the others are not", async () => {
  const { result, error, broadcasts } = client();
  await broadcasts.start(fakeBroadcastOptions("news"));
  await broadcasts.start(fakeBroadcastOptions("away"));
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

test("broadcast_stop: stops a broadcast; an unknown name is an error", async () => {
  const { result, error, broadcasts } = client();
  await broadcasts.start(fakeBroadcastOptions("news"));
  assert.equal(await result("broadcast_stop", { name: "news" }), "ok");
  assert.equal((await error("broadcast_stop", { name: "news" })).code, 207);
});

test("broadcast_start and broadcast_stop: accept only this host with the token; a neighbour with the token can list", async () => {
  const { json, query, broadcasts } = client();
  await broadcasts.start(fakeBroadcastOptions("news"));
  const ask = (method: string, values: Record<string, string>, origin = LOCAL) =>
    json(`/server/api?${query(method, values)}`, { origin, host: `${origin.local.host}:6878` });
  const start = { source: "/etc/passwd", name: "secrets" };
  assert.match((await ask("broadcast_start", start, NEIGHBOUR)).error.message, /^access denied/);
  assert.match((await ask("broadcast_stop", { name: "news" }, NEIGHBOUR)).error.message, /^access denied/);
  assert.equal((await ask("broadcast_list", {}, NEIGHBOUR)).result.broadcasts.length, 1);
  assert.equal((await ask("broadcast_start", { ...start, token: "" })).error.code, 104);
  assert.deepEqual([...broadcasts.records.keys()], ["news"]);
});

test("broadcast methods: an engine without broadcasting returns an error", async () => {
  const { result, error } = controlClient();
  assert.deepEqual(await result("broadcast_list"), { broadcasts: [] });
  assert.match(
    (await error("broadcast_start", { test_pattern: 1 })).message,
    /broadcasting is not available/,
  );
});
