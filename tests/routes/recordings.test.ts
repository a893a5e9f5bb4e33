import assert from "node:assert/strict";
import { test } from "node:test";
import { concatBytes } from "../../src/base/bytes.ts";
import type { UnixSeconds } from "../../src/base/time.ts";
import { patternSeconds } from "../health/pattern-stream.ts";
import { WEB_CONTENT } from "../library/fake-items.ts";
import { FAKE_TOKEN } from "../library/fake-library.ts";
import { checkTs } from "../remux/ts-checker.ts";
import { fakeApp } from "./client.ts";
import { fakeRecordings, RECORDED } from "./fake-recordings.ts";

/** An app whose recordings are in memory; the first has a file. */
async function recordingApp(file = RECORDED) {
  const { recordings, openFiles } = fakeRecordings(file);
  const app = fakeApp({ dependencies: { recordings } });
  const news = await app.library.items.add({ title: "News", content: WEB_CONTENT });
  const other = await app.library.items.add({ title: "Other", content: WEB_CONTENT });
  const control = (method: string, parameters: Record<string, string | number> = {}) => {
    const query = new URLSearchParams({ api_version: "3", method, token: FAKE_TOKEN });
    for (const [name, value] of Object.entries(parameters)) query.set(name, String(value));
    return app.json(`/server/api?${query}`);
  };
  return { ...app, control, news, other, openFiles };
}

test("recording_add: from now to the end of the programme, or for an hour; with a title and times if given", async () => {
  const { control, news, other } = await recordingApp();
  const { result } = await control("recording_add", { id: news.id });
  assert.deepEqual([result.title, result.channel, result.stop % 3_600], ["Show", "News", 0]);
  assert.equal(result.url, "http://127.0.0.1:6878/recordings/1.ts");
  const plain = (await control("recording_add", { id: other.id })).result;
  assert.deepEqual([plain.title, plain.stop - plain.start, plain.url], ["Other", 3_600, null]);
  const start = 2_000_000_000 as UnixSeconds;
  const given = (await control("recording_add", { id: other.id, start, stop: start + 60, title: "Mine" }))
    .result;
  assert.deepEqual([given.title, given.start, given.stop], ["Mine", start, start + 60]);
  assert.match((await control("recording_add", { id: 99 })).error.message, /99/);
});

test("recording_list, _stop, _delete: show and end recordings", async () => {
  const { control, news } = await recordingApp();
  await control("recording_add", { id: news.id });
  const { result } = await control("recording_list");
  assert.deepEqual([result.length, result[0].state, result[0].bytes], [1, "recording", RECORDED.length]);
  assert.equal((await control("recording_stop", { id: 1 })).result, "ok");
  assert.equal((await control("recording_delete", { id: 1 })).result, "ok");
  assert.deepEqual((await control("recording_list")).result, []);
  assert.match((await control("recording_delete", { id: 1 })).error.message, /no recording 1/);
});

test("/recordings/<id>.ts: the file with Range and under its name; closes the file in all cases", async () => {
  const { call, control, news, other, openFiles } = await recordingApp();
  await control("recording_add", { id: news.id });
  await control("recording_add", { id: other.id });
  const whole = await call("/recordings/1.ts?download=1");
  assert.deepEqual(new Uint8Array(await whole.arrayBuffer()), RECORDED);
  assert.match(
    whole.headers.get("content-disposition")!,
    /^attachment; filename="Show - News - \d{4}-\d\d-\d\d\.ts"/,
  );
  const part = await call("/recordings/1.ts", { headers: { range: "bytes=200000-200009" } });
  assert.deepEqual([part.status, part.headers.get("content-range")], [206, "bytes 200000-200009/300000"]);
  assert.deepEqual(new Uint8Array(await part.arrayBuffer()), RECORDED.slice(200_000, 200_010));
  const left = await call("/recordings/1.ts");
  await left.body!.cancel();
  assert.equal((await call("/recordings/1.ts", { method: "HEAD" })).headers.get("content-length"), "300000");
  assert.equal(openFiles(), 0);
  assert.deepEqual(
    [(await call("/recordings/2.ts")).status, (await call("/recordings/9.ts")).status],
    [404, 404],
  );
});

test("/recordings/<id>.m3u8: what is recorded as HLS, whose segments are one transport stream", async () => {
  const { call, control, news, openFiles } = await recordingApp(concatBytes(patternSeconds(false, 20)));
  await control("recording_add", { id: news.id });
  const manifest = await (await call("/recordings/1.m3u8")).text();
  assert.match(manifest, /#EXT-X-PLAYLIST-TYPE:VOD[\s\S]*#EXT-X-ENDLIST/);
  const durations = [...manifest.matchAll(/#EXTINF:([\d.]+)/g)].map(([, text]) => Number(text));
  assert.ok(Math.abs(durations.reduce((sum, each) => sum + each, 0) - 20) < 0.5, `${durations}`);
  const urls = manifest.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  assert.equal(urls.length, durations.length);
  const segments = [];
  // From the last to the first: a player may seek before it has read anything else.
  for (const url of urls.toReversed()) {
    const answer = await call(`/recordings/${url}`);
    assert.equal(answer.headers.get("content-type"), "video/mp2t");
    segments.unshift(new Uint8Array(await answer.arrayBuffer()));
  }
  checkTs(concatBytes(segments));
  assert.equal(openFiles(), 0);
  assert.equal((await call(`/recordings/${urls[0]}`, { method: "HEAD" })).status, 200);
  for (const missing of ["1/99999999999/0.ts", `${urls[0]}`.replace(/0\.ts$/, "99.ts"), "9.m3u8"])
    assert.equal((await call(`/recordings/${missing}`)).status, 404, missing);
});

test("/recordings/<id>.m3u8: a file that cannot be played gets an error", async () => {
  const { call, control, news, other } = await recordingApp();
  await control("recording_add", { id: news.id });
  await control("recording_add", { id: other.id });
  assert.match(await (await call("/recordings/1.m3u8")).text(), /format is not supported/);
  assert.match(await (await call("/recordings/2.m3u8")).text(), /nothing is recorded yet/);
});

test("recordings are closed to pages of other sites, and need the token to be changed", async () => {
  const { call, json, control, news } = await recordingApp();
  await control("recording_add", { id: news.id });
  const foreign = { headers: { origin: "http://evil.example", "sec-fetch-site": "cross-site" } };
  for (const path of ["1.ts", "1.m3u8", "1/300000/0.ts"])
    assert.equal((await call(`/recordings/${path}`, foreign)).status, 403, path);
  assert.match((await json("/server/api?method=recording_delete&id=1")).error, /token/);
});
