import assert from "node:assert/strict";
import { test } from "node:test";
import { runtime } from "#runtime";
import { equalBytes, toHex } from "../../src/base/bytes.ts";
import { openMedia } from "../../src/remux/open-media.ts";
import { base64, filmTorrent } from "../engine/fake-engine.ts";
import { FakeLive, fakeControl } from "../engine/fake-live.ts";
import { fixture } from "../parts/media-fixtures.ts";
import { memoryAccess } from "../remux/media-checks.ts";
import { fakeApp } from "./client.ts";

const film = filmTorrent();
const FILES = ["short.mp4", "long.mkv", "readme.txt"].map((name) => ({ name, size: 5000 }));

async function appWithFilm() {
  const app = fakeApp();
  const media = await openMedia(memoryAccess(await fixture("front.mp4")), { targetSeconds: 2 });
  app.transfers.prepare = (transfer) => {
    transfer.bringFiles(FILES);
    transfer.bringData();
    transfer.media = async () => media;
  };
  return { ...app, url: `/vod/${film.infohash}/1` };
}

function appWithLive() {
  const app = fakeApp();
  const live = new FakeLive();
  live.bring(60);
  app.transfers.prepare = (transfer) => {
    transfer.bringFiles(FILES);
    transfer.bringData();
    transfer.segmentSource = async () => live;
    transfer.live = fakeControl();
  };
  return { ...app, live, url: `/live/${film.infohash}` };
}

async function bytesOf(response: Response): Promise<Uint8Array> {
  return new Uint8Array(await response.arrayBuffer());
}

function segmentsIn(manifest: string): string[] {
  return manifest.split("\n").filter((line) => /^\d/.test(line));
}

test("GET /vod/…/index.m3u8: relative URLs, the same for every host and for every engine", async () => {
  const [one, two] = [await appWithFilm(), await appWithFilm()];
  const manifest = await one.call(`${one.url}/index.m3u8`);
  assert.equal(manifest.status, 200);
  assert.equal(manifest.headers.get("content-type"), "application/vnd.apple.mpegurl");
  assert.equal(manifest.headers.get("cache-control"), "public, max-age=3600");
  const text = await manifest.text();
  const names = segmentsIn(text);
  assert.deepEqual(names.slice(0, 2), ["0.ts", "1.ts"]);
  const other = await two.call(`${two.url}/index.m3u8`, { host: "localhost:6878" });
  assert.equal(await other.text(), text);
  assert.equal(other.headers.get("etag"), manifest.headers.get("etag"));
  for (const name of names) {
    const [mine, theirs] = [await one.call(`${one.url}/${name}`), await two.call(`${two.url}/${name}`)];
    assert.equal(mine.headers.get("cache-control"), "public, max-age=31536000, immutable");
    const bytes = await bytesOf(mine);
    assert.ok(bytes.length > 0 && equalBytes(bytes, await bytesOf(theirs)));
    assert.equal(mine.headers.get("etag"), `"${toHex(runtime.sha1(bytes))}"`);
    assert.equal(theirs.headers.get("etag"), mine.headers.get("etag"));
  }
});

test("GET /vod/…: all requests share one session, whose segments are made once, and which no URL names", async () => {
  const { call, url, engine } = await appWithFilm();
  const responses = await Promise.all(Array.from({ length: 40 }, () => call(`${url}/0.ts`)));
  const bodies = await Promise.all(responses.map(bytesOf));
  assert.ok(bodies.every((body) => equalBytes(body, bodies[0]!)));
  assert.equal(engine.figures().sessions, 1);
  assert.equal((await call(`/ace/c/${film.infohash}/0.ts`)).status, 403, "session URLs do not lead to it");
});

test("GET /vod/…: HEAD, If-None-Match and Range", async () => {
  const { call, url } = await appWithFilm();
  for (const name of ["index.m3u8", "0.ts"]) {
    const head = await call(`${url}/${name}`, { method: "HEAD" });
    const etag = head.headers.get("etag")!;
    assert.deepEqual([head.status, head.body], [200, null]);
    const again = await call(`${url}/${name}`, { headers: { "if-none-match": `"other", W/${etag}` } });
    assert.deepEqual([again.status, again.headers.get("etag")], [304, etag]);
    assert.ok(again.headers.get("cache-control")!.startsWith("public"));
  }
  const part = await call(`${url}/0.ts`, { headers: { range: "bytes=188-375" } });
  const whole = await bytesOf(await call(`${url}/0.ts`));
  assert.equal(part.status, 206);
  assert.ok(equalBytes(await bytesOf(part), whole.subarray(188, 376)));
});

test("GET /live/…: the manifest is fresh for a second, has no parts, and a segment is cached if it is whole", async () => {
  const { call, url, live } = appWithLive();
  const manifest = await call(`${url}/index.m3u8`);
  assert.equal(manifest.headers.get("cache-control"), "public, max-age=1");
  assert.equal(live.places.at(-1)!.urls.segment(1_234_567, "ts"), "234567.ts");
  const cacheControl = async () => (await call(`${url}/7.ts`)).headers.get("cache-control");
  assert.equal(await cacheControl(), "public, max-age=1");
  Object.assign(live, { isWhole: (number: number) => number === 7 });
  assert.equal(await cacheControl(), "public, max-age=60");
});

test("GET /live/… and /vod/…: an error is not cached and says what to do", async () => {
  const live = appWithLive();
  const vod = await appWithFilm();
  const cases = [
    [live, `/vod/${film.infohash}/0/index.m3u8`, 400, `this content is at /live/${film.infohash}/index.m3u8`],
    [vod, `/live/${film.infohash}/index.m3u8`, 400, "/vod/"],
    [vod, `/vod/${film.infohash}/77/index.m3u8`, 404, "expected a file index below 3"],
    [vod, `/vod/${film.infohash}/x/index.m3u8`, 404, "expected /live/"],
    [vod, "/live/zz/index.m3u8", 400, "expected /live/"],
    [vod, `${vod.url}/9999.ts`, 404, "expected a number below"],
    [vod, `${vod.url}/0.p1.ts`, 404, "expected /live/"],
    [vod, `${vod.url}/page.html`, 404, "expected /live/"],
  ] as const;
  for (const [app, path, status, text] of cases) {
    const response = await app.call(path);
    assert.equal(response.status, status, path);
    assert.ok((await response.text()).includes(text), path);
    assert.equal(response.headers.get("cache-control"), "no-store");
  }
});

test("GET /live/…: pages of other sites may play it; clients of the Internet only if remote access is on", async () => {
  const { call, url } = appWithLive();
  const page = await call(`${url}/index.m3u8`, { headers: { origin: "https://tv.example" } });
  assert.deepEqual([page.status, page.headers.get("access-control-allow-origin")], [200, "*"]);
  const remote = { host: "203.0.113.9", port: 4000 };
  const far = await call(`${url}/index.m3u8`, {
    origin: { remote, local: { host: "192.168.0.2", port: 6878 } },
    host: "192.168.0.2:6878",
  });
  assert.equal(far.status, 403);
});

test("GET /live/…: after its session has ended, the next request starts another one", async () => {
  const { call, url, engine, clock, transfers } = appWithLive();
  await (await call(`${url}/index.m3u8`)).text();
  await clock.advance(61_000);
  assert.equal(engine.figures().sessions, 0);
  assert.equal((await call(`${url}/index.m3u8`)).status, 200);
  assert.equal(engine.figures().sessions, 1);
  assert.ok(transfers.opened.length >= 1);
});

test("POST transport file, then /vod/…: the content that a player has started is found by its infohash", async () => {
  const { json, call, url } = await appWithFilm();
  const body = JSON.stringify({ transport_file_data: base64(film.bytes) });
  await json("/ace/getstream?format=json", { method: "POST", body });
  assert.equal((await call(`${url}/index.m3u8`)).status, 200);
});
