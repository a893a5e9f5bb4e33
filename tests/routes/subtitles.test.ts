import assert from "node:assert/strict";
import { test } from "node:test";
import { base64, filmTorrent } from "../engine/fake-engine.ts";
import { track } from "../engine/fake-media.ts";
import { fakeApp } from "./client.ts";

const film = filmTorrent();
const ADDRESS = `/subtitles/${film.infohash}/1`;

/** An engine with a film of five segments, each of which has one cue. */
async function appWithSubtitles() {
  const app = fakeApp();
  await app.call("/ace/getstream", {
    method: "POST",
    body: JSON.stringify({ transport_file_data: base64(film.bytes) }),
  });
  const { media_: media } = app.transfers.opened[0]!;
  media.tracks = [
    ...media.tracks,
    track("subtitle", "subrip"),
    { ...track("subtitle", "pgs"), isOpaque: true },
  ];
  return { ...app, media };
}

test("subtitles: lists the text subtitles with their addresses", async () => {
  const { call } = await appWithSubtitles();
  const response = await call(ADDRESS);
  const place = `http://127.0.0.1:6878${ADDRESS}/2`;
  assert.deepEqual(await response.json(), {
    subtitles: [
      {
        language: "eng",
        title: null,
        codec: "subrip",
        forced: false,
        vtt: `${place}.vtt`,
        srt: `${place}.srt`,
      },
    ],
    pictures: [],
  });
});

test("subtitles: one file of all cues, as WebVTT and as SubRip with continuous numbers", async () => {
  const { call } = await appWithSubtitles();
  const vtt = await call(`${ADDRESS}/2.vtt`);
  assert.equal(vtt.headers.get("content-type"), "text/vtt; charset=utf-8");
  assert.equal(vtt.headers.get("access-control-allow-origin"), "*");
  const text = await vtt.text();
  assert.match(text, /^WEBVTT\n\n00:00:00\.000 --> 00:00:01\.000\ntrack 2 segment 0\n\n00:00:12/);
  assert.match(text, /segment 4\n$/);
  const srt = await (await call(`${ADDRESS}/2.srt`)).text();
  assert.match(srt, /\n\n5\n00:00:48,000 --> 00:00:49,000\ntrack 2 segment 4\n\n$/);
});

test("subtitles: a delay moves all cues, and omits those before the film", async () => {
  const { call } = await appWithSubtitles();
  const later = await (await call(`${ADDRESS}/2.vtt?delay=2.5`)).text();
  assert.match(later, /^WEBVTT\n\n00:00:02\.500 --> 00:00:03\.500\ntrack 2 segment 0\n\n00:00:14\.500/);
  // "+" in a query is a space.
  assert.equal(await (await call(`${ADDRESS}/2.vtt?delay=+2.5`)).text(), later);
  const earlier = await (await call(`${ADDRESS}/2.srt?delay=-1`)).text();
  assert.match(earlier, /^1\n00:00:11,000 --> 00:00:12,000\ntrack 2 segment 1\n/);
  assert.match(
    await (await call(`${ADDRESS}/2.srt?delay=-0.5`)).text(),
    /^1\n00:00:00,000 --> 00:00:00,500\n/,
  );
  for (const delay of ["", "x", "1e2", "601", "-600.001", "Infinity"])
    assert.equal((await call(`${ADDRESS}/2.vtt?delay=${delay}`)).status, 400, delay);
});

test("subtitles: a file of the user is converted, in any character set", async () => {
  const { call } = fakeApp();
  const convert = (name: string, body: string | Uint8Array<ArrayBuffer>, headers = {}) =>
    call(`/app/subtitles?name=${encodeURIComponent(name)}`, { method: "POST", body, headers });
  const latin = Uint8Array.from(
    "1\n00:00:01,000 --> 00:00:02,000\nD\xe9j\xe0 vu, l\xe0 o\xf9 <i>\xe7a</i> & <x>\n",
    (letter) => letter.charCodeAt(0),
  );
  const response = await convert("Mon film.SRT", latin);
  assert.equal(response.headers.get("content-type"), "text/vtt; charset=utf-8");
  assert.equal(
    await response.text(),
    "WEBVTT\n\n00:00:01.000 --> 00:00:02.000\nDéjà vu, là où <i>ça</i> &amp; \n".replace(" \n", "\n"),
  );
  const event = "[Events]\nDialogue: 0,0:00:03.00,0:00:04.50,Default,,0,0,0,,{\\i1}Hi\\Nthere";
  assert.match(
    await (await convert("a.ass", event)).text(),
    /00:00:03\.000 --> 00:00:04\.500\n<i>Hi\nthere<\/i>\n/,
  );
  const status = async (...request: Parameters<typeof convert>) => (await convert(...request)).status;
  assert.equal(await status("a.exe", event), 400);
  assert.equal(await status("a.srt", "no subtitles"), 415);
  assert.equal(await status("a.srt", ""), 415);
  assert.equal(await status("a.srt", new Uint8Array(10_000_001)), 413);
  assert.equal(await status("a.ass", event, { origin: "https://example.com" }), 403);
});

test("subtitles: a number that does not exist, and subtitles that are pictures, are errors", async () => {
  const { call, media } = await appWithSubtitles();
  assert.equal((await call(`${ADDRESS}/3.vtt`)).status, 404);
  assert.equal((await call(`${ADDRESS}/9.srt`)).status, 404);
  assert.equal((await call(`${ADDRESS}/2.ass`)).status, 404);
  media.tracks = [];
  assert.deepEqual(await (await call(ADDRESS)).json(), { subtitles: [], pictures: [] });
});

test("subtitles: the transfer is held while a player reads, and released at the end, at an error and when it leaves", async () => {
  const { call, engine } = await appWithSubtitles();
  const held = () => engine.figures().transfers.map(({ holders }) => holders);
  const before = held();
  const response = await call(`${ADDRESS}/2.vtt`);
  const reader = response.body!.getReader();
  await reader.read();
  assert.notDeepEqual(held(), before);
  await reader.cancel();
  assert.deepEqual(held(), before);
  await (await call(`${ADDRESS}/2.vtt`)).text();
  await call(`${ADDRESS}/9.vtt`);
  await call(ADDRESS, { method: "HEAD" });
  await call(`${ADDRESS}/2.srt`, { method: "HEAD" });
  assert.deepEqual(held(), before);
});

test("subtitles: pictures of a range of time, with their colours and runs", async () => {
  const { call, media } = await appWithSubtitles();
  media.tracks = [...media.tracks, { ...track("subtitle", "pgs"), isOpaque: true, isPicture: true }];
  const part = {
    x: 1,
    y: 2,
    width: 3,
    height: 1,
    palette: Uint8Array.of(9, 8, 7, 255),
    runs: Uint8Array.of(3, 0),
  };
  Object.assign(media, {
    pictures: async (number: number, { from, to }: { from: number; to: number }) => [
      { seconds: from, isForced: number === 4, width: 1920, height: 1080, parts: [part] },
      { seconds: to, isForced: false, width: 1920, height: 1080, parts: [] },
    ],
  });
  const { pictures: listed } = (await (await call(ADDRESS)).json()) as {
    pictures: { codec: string; json: string }[];
  };
  assert.deepEqual([listed.length, listed[0]?.codec], [1, "pgs"]);
  const address = `${ADDRESS}/4.json`;
  assert.ok(listed[0]?.json.endsWith(address));
  const response = await call(`${address}?from=10&to=20.5`);
  assert.deepEqual(await response.json(), {
    pictures: [
      {
        start: 10,
        forced: true,
        width: 1920,
        height: 1080,
        parts: [{ x: 1, y: 2, width: 3, height: 1, palette: "CQgH/w==", runs: "AwA=" }],
      },
      { start: 20.5, forced: false, width: 1920, height: 1080, parts: [] },
    ],
  });
  for (const query of ["", "?from=1", "?from=5&to=5", "?from=0&to=61", "?from=-1&to=3", "?from=x&to=1"])
    assert.equal((await call(address + query)).status, 400, query);
  assert.equal((await call(`${ADDRESS}/5.json?from=0&to=1`)).status, 404);
});
