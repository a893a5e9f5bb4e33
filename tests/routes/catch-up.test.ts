import assert from "node:assert/strict";
import { test } from "node:test";
import { WEB_CONTENT } from "../library/fake-items.ts";
import { FAKE_TOKEN } from "../library/fake-library.ts";
import { fakeApp } from "./client.ts";
import { FakeCatchUp } from "./fake-catch-up.ts";

const USER = "username=viewer@example.org&password=correct%20horse";

/** An app with two channels, the first of which is kept. */
async function catchUpApp() {
  const catchUp = new FakeCatchUp();
  const app = fakeApp({ dependencies: { catchUp, servesXtream: true } });
  const news = await app.library.items.add({
    title: "News",
    content: WEB_CONTENT,
    isLive: 1,
    tvgId: "news.x",
  });
  const other = await app.library.items.add({ title: "Other", content: WEB_CONTENT, isLive: 1 });
  await catchUp.add(news);
  const control = (method: string, parameters: Record<string, string | number> = {}) => {
    const query = new URLSearchParams({ api_version: "3", method, token: FAKE_TOKEN });
    for (const [name, value] of Object.entries(parameters)) query.set(name, String(value));
    return app.json(`/server/api?${query}`);
  };
  return { ...app, control, news, other, catchUp, start: catchUp.startMs / 1000 };
}

test("/catch-up/<item>.ts: a past time with Range; the seconds that are missing are reported", async () => {
  const { call, start } = await catchUpApp();
  const whole = await call(`/catch-up/1.ts?utc=${start - 60}&duration=180`);
  assert.deepEqual(
    [whole.status, whole.headers.get("content-type"), whole.headers.get("content-length")],
    [200, "video/mp2t", "12000"],
  );
  assert.equal(whole.headers.get("x-sluice-gaps"), "0-60");
  assert.equal((await whole.arrayBuffer()).byteLength, 12_000);
  const range = { headers: { range: "bytes=11000-" } };
  const part = await call(`/catch-up/1.ts?start=${start}.5&end=${start + 120}`, range);
  assert.deepEqual([part.status, part.headers.get("content-range")], [206, "bytes 11000-11999/12000"]);
  const head = await call(`/catch-up/1.ts?start=${start}&duration=60`, { method: "HEAD" });
  assert.deepEqual([head.headers.get("content-length"), await head.text()], ["6000", ""]);
});

test("/catch-up/<item>.m3u8: segments that the engine serves; an event list if the time is not over", async () => {
  const { call, start } = await catchUpApp();
  const manifest = await (await call(`/catch-up/1.m3u8?utc=${start}&duration=60`)).text();
  assert.match(manifest, /#EXT-X-PLAYLIST-TYPE:VOD[\s\S]*#EXT-X-ENDLIST/);
  const urls = manifest.split("\n").filter((line) => line.startsWith("http"));
  assert.equal(urls.length, 6);
  assert.equal((await (await call(urls[5]!)).arrayBuffer()).byteLength, 1_000);
  assert.equal((await call(urls[5]!, { method: "HEAD" })).headers.get("content-length"), "1000");
  const now = Math.floor(Date.now() / 1000);
  const growing = await (await call(`/catch-up/1.m3u8?utc=${now - 600}&duration=3600`)).text();
  assert.match(growing, /#EXT-X-PLAYLIST-TYPE:EVENT/);
  assert.doesNotMatch(growing, /ENDLIST/);
  const live = await call(`/catch-up/1.ts?utc=${now - 600}&duration=3600`);
  assert.deepEqual([live.headers.get("content-length"), (await live.arrayBuffer()).byteLength], [null, 7]);
  assert.equal((await call("/catch-up/1/5/0-10.ts")).status, 404);
  // A time that begins before the kept media plays from the first kept segment on.
  const early = await (await call(`/catch-up/1.m3u8?utc=${start - 3_600}&duration=3660`)).text();
  assert.deepEqual(
    early.split("\n").filter((line) => line.startsWith("http")),
    urls,
  );
});

test("/catch-up/…: without a duration the programme is played; errors say what is kept", async () => {
  const { call, start } = await catchUpApp();
  // The fake guide has programmes of an hour.
  const programme = await call(`/catch-up/1.ts?utc=${3_600 * Math.floor(start / 3_600) - 1}`);
  assert.equal(programme.status, 404);
  assert.match(await programme.text(), /nothing of this time is kept; this channel has \d{4}-/);
  assert.match(await (await call(`/catch-up/2.ts?utc=${start}&duration=60`)).text(), /catch-up is not on/);
  for (const query of [
    "",
    "?utc=x&duration=60",
    `?utc=${start}&duration=999999`,
    `?utc=${start + 86_400}&duration=60`,
  ])
    assert.equal((await call(`/catch-up/1.ts${query}`)).status, 400, query);
  assert.equal((await call(`/catch-up/9.ts?utc=${start}&duration=60`)).status, 404);
  const foreign = { headers: { origin: "http://evil.example", "sec-fetch-site": "cross-site" } };
  assert.equal((await call(`/catch-up/1.ts?utc=${start}&duration=60`, foreign)).status, 403);
});

test("catch_up_list, catch_up_set: show and change which channels are kept", async () => {
  const { control, json, catchUp, other } = await catchUpApp();
  assert.equal((await control("catch_up_set", { id: 2, value: 1 })).result, "ok");
  assert.equal(catchUp.isKept(other), true);
  const { result } = await control("catch_up_list");
  assert.deepEqual([result.window, result.channels.length, result.channels[0].kept.length], [172_800, 2, 1]);
  const one = (await control("catch_up_list", { id: 1 })).result;
  assert.deepEqual([one.is_kept, one.channels.length, one.channels[0].item_id], [true, 1, 1]);
  const programmes = (
    await control("get_epg_by_item_id", { id: 1, min_stop: result.channels[0].kept[0].start })
  ).result;
  assert.ok(programmes[0].kept_seconds > 0 && programmes.at(-1).kept_seconds === 0);
  assert.equal((await control("catch_up_set", { id: 2, value: 0 })).result, "ok");
  assert.equal((await control("catch_up_list")).result.channels.length, 1);
  assert.match((await json("/server/api?method=catch_up_set&id=2&value=1")).error, /token/);
  const off = fakeApp();
  const query = `/server/api?api_version=3&token=${FAKE_TOKEN}&method=`;
  await off.library.items.add({
    title: "News",
    content: WEB_CONTENT,
  });
  assert.deepEqual((await off.json(`${query}catch_up_list`)).result, {
    is_kept: null,
    window: 0,
    channels: [],
  });
  assert.match((await off.json(`${query}catch_up_set&id=1&value=1`)).error.message, /--catch-up 24h/);
});

test("exported lists and the Xtream lists offer the kept days; /timeshift plays them", async () => {
  const { call, start, library, news, other } = await catchUpApp();
  await call("/playlist/get");
  const { catchUpDays } = library.exported[0]!;
  assert.deepEqual([catchUpDays!(news), catchUpDays!(other)], [2, undefined]);
  const streams = await (await call(`/player_api.php?${USER}&action=get_live_streams`)).json();
  assert.deepEqual(
    streams.map((each: Record<string, unknown>) => [each.tv_archive, each.tv_archive_duration]),
    [
      [1, 2],
      [0, 0],
    ],
  );
  const { epg_listings: table } = await (
    await call(`/player_api.php?${USER}&action=get_simple_data_table&stream_id=1`)
  ).json();
  assert.ok(table.some(({ has_archive }: { has_archive: number }) => has_archive === 1));
  const time = new Date(1000 * start).toISOString();
  const path = `${time.slice(0, 10)}:${time.slice(11, 16).replace(":", "-")}`;
  const played = await call(`/timeshift/viewer%40example.org/correct%20horse/10/${path}/1.ts`);
  assert.equal(played.status, 200);
  assert.ok((await played.arrayBuffer()).byteLength >= 55_000);
  const early = new Date(1000 * (start - 600)).toISOString();
  const before = `${early.slice(0, 10)}:${early.slice(11, 16).replace(":", "-")}`;
  const partly = await call(`/timeshift/viewer%40example.org/correct%20horse/20/${before}/1.ts`);
  assert.deepEqual([partly.status, partly.headers.get("x-sluice-gaps")?.startsWith("0-6")], [200, true]);
  await partly.body?.cancel();
  const nothing = await call(`/timeshift/viewer%40example.org/correct%20horse/5/${before}/1.ts`);
  assert.equal(nothing.status, 404);
  assert.match(await nothing.text(), /nothing of this time is kept; this channel has/);
  const old = await call(`/streaming/timeshift.php?${USER}&stream=1&start=${path}&duration=10`);
  assert.equal(old.status, 200);
  await old.body?.cancel();
  assert.equal((await call(`/timeshift/viewer%40example.org/wrong/10/${path}/1.ts`)).status, 401);
  assert.equal((await call(`/streaming/timeshift.php?${USER}&stream=1&start=x&duration=10`)).status, 400);
});
