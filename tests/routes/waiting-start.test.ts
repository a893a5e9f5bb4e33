import assert from "node:assert/strict";
import { test } from "node:test";
import { deferred } from "../../src/async/deferred.ts";
import { SluiceError } from "../../src/base/errors.ts";
import { settled } from "../engine/fake-clock.ts";
import { filmTorrent } from "../engine/fake-engine.ts";
import { fakeApp } from "./client.ts";

const URL_OF_FILM = "http://slow.example/film.torrent";
const film = filmTorrent("waiting");

/** An app whose web server answers when the test says so. */
function slowApp() {
  const app = fakeApp();
  const answer = deferred();
  const { get } = app.outbound;
  app.outbound.get = async (url, options) => {
    await answer.promise;
    return get(url, options);
  };
  /** Starts a session; the answer must not need the web server. */
  const start = async (output = "getstream", query = "") => {
    const starting = app.json(`/ace/${output}?format=json&url=${URL_OF_FILM}${query}`);
    await settled();
    // The routes measure the time that passed by the real clock.
    await app.clock.advance(900);
    return (await starting).response;
  };
  /** Starts without `format=json` and returns where the player is sent before the web server has answered. */
  const redirect = async (path: string) => {
    const starting = app.call(path);
    await settled();
    await app.clock.advance(900);
    const response = await starting;
    assert.equal(response.status, 302);
    return response.headers.get("location")!;
  };
  return { ...app, answer, start, redirect };
}

test("a start by URL answers before the web server; stat says what it waits for", async () => {
  const app = slowApp();
  const session = await app.start();
  assert.match(session.infohash, /^[0-9a-f]{40}$/);
  await app.clock.advance(2_000);
  const { response } = await app.json(session.stat_url);
  assert.deepEqual([response.status, response.infohash], ["prefuf", session.infohash]);
  assert.equal(response.buffering.reason, "server");
  assert.match(response.buffering.text, /server of this URL has not answered for 3 s/);
});

test("the URLs of a waiting start lead to its session: stat, media, commands", async () => {
  const app = slowApp();
  const session = await app.start();
  const playing = app.call(session.playback_url);
  await settled();
  app.web.set(URL_OF_FILM, { status: 200, bytes: film.bytes.slice() });
  app.answer.resolve();
  const reader = (await playing).body!.getReader();
  assert.equal((await reader.read()).value?.[0], 0x47);
  const { response } = await app.json(session.stat_url);
  assert.deepEqual([response.status, response.infohash], ["dl", film.infohash]);
  assert.equal((await app.json(`${session.command_url}?method=stop`)).response, "ok");
  assert.equal((await app.json(session.stat_url)).error, "unknown playback session id");
  assert.equal(app.engine.figures().sessions, 0);
});

test("a manifest of a waiting start comes with the session", async () => {
  const app = slowApp();
  const session = await app.start("manifest.m3u8");
  const playing = app.call(session.playback_url);
  await settled();
  app.web.set(URL_OF_FILM, { status: 200, bytes: film.bytes.slice() });
  app.answer.resolve();
  assert.match(await (await playing).text(), new RegExp(`/ace/c/${film.infohash}/0.ts`));
});

test("events of a waiting start: those of its session", async () => {
  const app = slowApp();
  const session = await app.start("getstream", "&use_api_events=1");
  const event = app.json(session.event_url);
  await settled();
  app.web.set(URL_OF_FILM, { status: 200, bytes: film.bytes.slice() });
  app.answer.resolve();
  assert.equal((await event).response.name, "download_started");
});

test("a waiting start that fails: stat shows why until the idle time has passed", async () => {
  const app = slowApp();
  const session = await app.start();
  app.answer.reject(new SluiceError("url_unreachable", "slow.example does not answer"));
  await settled();
  const { response } = await app.json(session.stat_url);
  assert.match(response.error_message, /slow\.example does not answer/);
  assert.equal((await app.call(session.playback_url)).status, 502);
  await app.clock.advance(app.engine.settings.sessionIdleMs + 1_000);
  assert.equal((await app.json(session.stat_url)).error, "unknown playback session id");
});

test("stop ends a waiting start: its session never begins", async () => {
  const app = slowApp();
  const session = await app.start();
  assert.equal((await app.json(`${session.command_url}?method=stop`)).response, "ok");
  assert.equal((await app.json(session.stat_url)).error, "unknown playback session id");
  app.web.set(URL_OF_FILM, { status: 200, bytes: film.bytes.slice() });
  app.answer.resolve();
  await settled();
  assert.equal(app.engine.figures().sessions, 0);
});

test("a start without JSON redirects before the web server answers; the player waits at the new URL", async () => {
  const app = slowApp();
  const playing = app.call(await app.redirect(`/ace/getstream?url=${URL_OF_FILM}`));
  await settled();
  app.web.set(URL_OF_FILM, { status: 200, bytes: film.bytes.slice() });
  app.answer.resolve();
  const response = await playing;
  assert.equal(response.status, 200);
  assert.equal((await response.body!.getReader().read()).value?.[0], 0x47);
});

test("a start without JSON that fails late: the player gets the reason at the new URL", async () => {
  const app = slowApp();
  const playing = app.call(await app.redirect(`/ace/manifest.m3u8?url=${URL_OF_FILM}`));
  await settled();
  app.answer.reject(new SluiceError("url_unreachable", "slow.example does not answer"));
  const response = await playing;
  assert.equal(response.status, 502);
  assert.match(await response.text(), /slow\.example does not answer/);
});

test("content that decides its output after the redirect: the player is sent on", async () => {
  for (const [output, format, place] of [
    ["getstream", "hls", "m"],
    ["manifest.m3u8", "http", "r"],
  ]) {
    const app = slowApp();
    const url = `/ace/${output}?url=${URL_OF_FILM}&playlist_output_format_vod=${format}`;
    const playing = app.call(await app.redirect(url));
    await settled();
    app.web.set(URL_OF_FILM, { status: 200, bytes: film.bytes.slice() });
    app.answer.resolve();
    const response = await playing;
    assert.equal(response.status, 302);
    assert.match(response.headers.get("location")!, new RegExp(`^/ace/${place}/${film.infohash}/`));
  }
});

test("a quick failure is the answer of the start", async () => {
  const app = fakeApp();
  const { error } = await app.json(`/ace/getstream?format=json&url=${URL_OF_FILM}`);
  assert.match(error, /nothing answers/);
});
