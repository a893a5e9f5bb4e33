import assert from "node:assert/strict";
import { test } from "node:test";
import { settled } from "../engine/fake-clock.ts";
import { filmTorrent } from "../engine/fake-engine.ts";
import { tsBytes } from "../engine/fake-media.ts";
import { fakeApp } from "./client.ts";

const film = filmTorrent();
const MAGNET = `magnet=${encodeURIComponent(`magnet:?xt=urn:btih:${film.infohash}`)}`;

/** The routes on a swarm without files or data until the test provides them. */
function slowApp(settings = {}) {
  const app = fakeApp({ hasData: false, settings: { peersTimeoutMs: 60_000, ...settings } });
  const bring = async () => {
    const transfer = app.transfers.opened[0]!;
    transfer.bringFiles([{ name: "film.mp4", size: 5000 }]);
    transfer.bringData();
    await settled();
  };
  /** Returns whether a promise is settled. */
  const isDone = async (promise: Promise<unknown>) => {
    let done = false;
    promise.finally(() => {
      done = true;
    });
    await settled();
    return done;
  };
  const playback = async (path: string) => (await app.call(path)).headers.get("location")!;
  return { ...app, bring, isDone, playback };
}

test("a slow swarm: a JSON start answers within half a second, and stat reports what it waits for", async () => {
  const app = slowApp();
  const start = app.json(`/ace/getstream?${MAGNET}&format=json`);
  await app.clock.advance(300);
  assert.equal(await app.isDone(start), false);
  await app.clock.advance(150);
  const { response, error } = await start;
  assert.equal(error, null);
  assert.equal((await app.json(response.stat_url)).response.status, "prefuf");
  await app.bring();
  assert.equal((await app.json(response.stat_url)).response.status, "dl");
});

test("a slow swarm: a redirect start answers at once", async () => {
  const app = slowApp();
  for (const path of ["/ace/getstream", "/ace/manifest.m3u8"])
    assert.equal((await app.call(`${path}?${MAGNET}`)).status, 302);
});

test("a slow swarm: the headers of a stream wait for the first data, without null packets", async () => {
  const app = slowApp();
  const answer = app.call(await app.playback(`/ace/getstream?${MAGNET}`));
  await app.clock.advance(7_900);
  assert.equal(await app.isDone(answer), false);
  await app.bring();
  const reader = (await answer).body!.getReader();
  assert.deepEqual((await reader.read()).value, tsBytes(0));
});

test("a slow swarm: after 8 s sends headers and null packets every half second, then the film from its start", async () => {
  const app = slowApp();
  const answer = app.call(await app.playback(`/ace/getstream?${MAGNET}`));
  await app.clock.advance(8_000);
  assert.equal((await answer).status, 200);
  const reader = (await answer).body!.getReader();
  for (let i = 0; i < 60; i++) {
    const read = reader.read();
    await app.clock.advance(500);
    assert.equal((await read).value?.length, 7 * 188);
  }
  const read = reader.read();
  await app.bring();
  assert.deepEqual((await read).value, tsBytes(0));
});

test("a slow swarm: a manifest waits until it can list segments, and has a content-length", async () => {
  const app = slowApp();
  const answer = app.call(await app.playback(`/ace/manifest.m3u8?${MAGNET}`));
  await app.clock.advance(30_000);
  assert.equal(await app.isDone(answer), false);
  await app.bring();
  const text = await (await answer).text();
  assert.match(text, /^#EXTM3U\n.*#EXTINF:12.*\/0\.ts\n/s);
  assert.equal((await answer).headers.get("content-length"), String(text.length));
});

test("a slow swarm: an error within 8 s has its own status", async () => {
  const app = slowApp({ peersTimeoutMs: 5_000 });
  const answer = app.call(await app.playback(`/ace/getstream?${MAGNET}`));
  await app.clock.advance(5_000);
  assert.equal((await answer).status, 500);
  assert.match(await (await answer).text(), /^download not found/);
});

test("a slow swarm: players that disconnect while they wait leave nothing behind", async () => {
  const app = slowApp({ sessionIdleMs: 20_000, transferIdleMs: 0 });
  const ts = await app.playback(`/ace/getstream?${MAGNET}`);
  const hls = await app.playback(`/ace/manifest.m3u8?${MAGNET}`);
  const segment = `/ace/c/${film.infohash}/0.ts`;
  const abort = new AbortController();
  const waiting = [ts, hls, segment].map((url) =>
    app.call(url, { signal: abort.signal }).then(
      ({ status }) => status,
      (reason: unknown) => reason,
    ),
  );
  await app.clock.advance(5_000);
  abort.abort();
  await Promise.all(waiting);
  await app.clock.advance(20_000);
  assert.deepEqual([app.engine.figures().sessions, app.engine.figures().transfers], [0, []]);
  assert.equal(app.clock.waiting, 0);
});
