import assert from "node:assert/strict";
import { test } from "node:test";
import { base64, filmTorrent } from "../engine/fake-house.ts";
import { fakeApp } from "./client.ts";

const film = filmTorrent();
const UNKNOWN = "unknown playback session id";

async function appWithSession(query = "", options: Parameters<typeof fakeApp>[0] = {}) {
  const app = fakeApp(options);
  const { response } = await app.json(`/ace/getstream?format=json${query}`, {
    method: "POST",
    body: JSON.stringify({ transport_file_data: base64(film.bytes) }),
  });
  return { ...app, session: response };
}

test("stat: every member of the interface, with what the transfer tells", async () => {
  const { json, session } = await appWithSession("&client_session_id=5");
  const { response, error } = await json(session.stat_url);
  assert.equal(error, null);
  assert.deepEqual(response, {
    status: "dl",
    progress: 100,
    peers: 2,
    speed_down: 2,
    speed_up: 0,
    downloaded: 3_000_000,
    uploaded: 0,
    network_monitor_status: 0,
    network_monitor_started: false,
    debug_level: 0,
    selected_stream_index: -1,
    selected_file_index: 1,
    total_progress: 12,
    stream_status: -1,
    manifest_access_mode: -1,
    infohash: film.infohash,
    playback_session_id: session.playback_session_id,
    is_live: 0,
    is_encrypted: 0,
    client_session_id: 5,
    disk_cache_stats: { avail: 1e9, disk_cache_limit: 2e9, inactive_inuse: 222, active_inuse: 111 },
    swarm_seeds: -1,
    swarm_leechers: -1,
    buffering: null,
  });
});

for (const [compat, word] of [
  ["document", "prefuf"],
  ["deployed", "prebuf"],
] as const) {
  test(`stat: before the first data the status is ${word} with compat ${compat}`, async () => {
    const app = fakeApp({ hasData: false, settings: { compat } });
    const start = app.json(`/ace/getstream?format=json&magnet=magnet:?xt=urn:btih:${film.infohash}`);
    await app.clock.advance(1000);
    const { response } = await app.json((await start).response.stat_url);
    assert.deepEqual([response.status, response.selected_file_index, response.progress], [word, -1, 0]);
  });
}

test("stat: a start that failed says so until the session ends", async () => {
  const app = fakeApp({ hasData: false, settings: { peersTimeoutMs: 5_000 } });
  const start = app.json(`/ace/getstream?format=json&magnet=magnet:?xt=urn:btih:${film.infohash}`);
  await app.clock.advance(6_000);
  const { stat_url } = (await start).response;
  const { response, error } = await app.json(stat_url);
  assert.deepEqual([response.status, error], ["err", null]);
  assert.match(response.error_message, /^download not found: no peer was found/);
});

test("stat: counts as activity unless skip_player_activity=1", async () => {
  const { json, session, clock } = await appWithSession();
  for (let i = 0; i < 5; i++) {
    await clock.advance(50_000);
    assert.equal((await json(session.stat_url)).error, null);
  }
  await clock.advance(50_000);
  assert.equal((await json(`${session.stat_url}?skip_player_activity=1`)).error, null);
  await clock.advance(10_001);
  assert.equal((await json(session.stat_url)).error, UNKNOWN);
});

test("stop: answers ok; then stat, commands and events know the session no more", async () => {
  const { json, call, session } = await appWithSession("&use_api_events=1");
  assert.deepEqual(
    await (await call(`${session.command_url}?method=stop`)).text(),
    '{"response": "ok", "error": null}',
  );
  for (const url of [session.stat_url, `${session.command_url}?method=stop`, session.event_url]) {
    const answer = await json(url);
    assert.deepEqual([answer.status, answer.response, answer.error], [200, null, UNKNOWN], url);
  }
  assert.equal((await call(session.playback_url)).status, 404);
  assert.equal((await call(session.playback_url.replace("/ace/r/", "/content/"))).status, 404);
});

test("stop: api_version=2 gets the control envelope, for errors too", async () => {
  const { json, session } = await appWithSession();
  const ok = await json(`${session.command_url}?method=stop&api_version=2`);
  assert.deepEqual([ok.result, ok.error], ["ok", null]);
  const gone = await json(`${session.command_url}?method=stop&api_version=2`);
  assert.deepEqual(gone.error, { message: UNKNOWN, code: 0 });
});

test("commands: each that cannot be says why", async () => {
  const { json, session } = await appWithSession();
  const error = async (query: string) => (await json(`${session.command_url}?${query}`)).error;
  assert.match(await error("method=liveseek&pos=-1"), /not a live stream/);
  assert.match(await error("method=set_stream&stream_index=1"), /one stream only/);
  assert.match(await error("method=dance"), /unknown method dance/);
  assert.match(await error(""), /method is missing/);
  assert.match(await error("method=set_player_activity_timeout&timeout=0"), /expected 1 to 86400 seconds/);
  assert.match(await error("method=set_player_activity_timeout"), /got nothing/);
});

test("set_player_activity_timeout: sets how long the session lives unread", async () => {
  const { json, session, clock } = await appWithSession();
  const set = await json(`${session.command_url}?method=set_player_activity_timeout&timeout=300`);
  assert.equal(set.response, "ok");
  await clock.advance(299_000);
  assert.equal((await json(`${session.stat_url}?skip_player_activity=1`)).error, null);
  await clock.advance(2_000);
  assert.equal((await json(session.stat_url)).error, UNKNOWN);
});

test("event: waits 15 s for an event, then answers empty; a stop is told to who waits", async () => {
  const { json, session, clock, engine } = await appWithSession("&use_api_events=1");
  const quiet = json(session.event_url);
  await clock.advance(15_000);
  assert.deepEqual([(await quiet).response, (await quiet).error], [null, null]);
  const waiting = json(session.event_url);
  await clock.advance(10);
  const key = session.stat_url.split("/").at(-1);
  engine.session(film.infohash, key)!.stop();
  assert.deepEqual((await waiting).response, {
    name: "download_stopped",
    params: { reason: "the session was stopped" },
  });
});

test("a player that moves on: whoever reads the old session reaches its end, and its URLs are unknown", async () => {
  const app = fakeApp();
  const start = async (name: string) =>
    (
      await app.json("/ace/getstream?format=json&pid=tv", {
        method: "POST",
        body: JSON.stringify({ transport_file_data: base64(filmTorrent(name).bytes) }),
      })
    ).response;
  const first = await start("one");
  const reader = (await app.call(first.playback_url)).body!.getReader();
  await reader.read();
  const second = await start("two");
  assert.equal((await reader.read()).done, true);
  assert.equal((await app.json(first.stat_url)).error, UNKNOWN);
  assert.equal((await app.json(second.stat_url)).error, null);
});

test("session URLs: a key or an infohash that never was is unknown", async () => {
  const { json, call, session } = await appWithSession();
  for (const url of [session.stat_url.slice(0, -1), `/ace/stat/${"0".repeat(40)}/x`, "/ace/stat/zz/x"])
    assert.equal((await json(url)).error, UNKNOWN);
  assert.equal((await call(`/ace/m/${film.infohash}/nothing.m3u8`)).status, 404);
  assert.equal((await call(session.playback_url.replace("/ace/r/", "/ace/m/"))).status, 404);
});

test("session URLs: what clients hang on to them means nothing", async () => {
  const { json, call, session } = await appWithSession();
  for (const end of ["&.mp4", "?", "?x=1", ".m3u8", "&.mp4?x=1"]) {
    assert.equal((await json(`${session.stat_url}${end}`)).error, null, end);
    const stream = await call(`${session.playback_url}${end}`);
    assert.equal(stream.status, 200, end);
    await stream.body?.cancel();
  }
});

test("HEAD of the event URL: answers at once and takes no event", async () => {
  const { json, call, session } = await appWithSession("&use_api_events=1");
  assert.equal((await call(session.event_url, { method: "HEAD" })).status, 200);
  const waiting = json(session.event_url);
  await json(`${session.command_url}?method=stop`);
  assert.equal((await waiting).response.name, "download_stopped");
});

test("JSON and error texts tell their length in bytes", async () => {
  const { call, session } = await appWithSession();
  for (const url of [
    session.stat_url,
    "/ace/getstream",
    "/ace/getstream?format=json",
    "/webui/api/service",
  ]) {
    const answer = await call(url);
    const { byteLength } = await answer.arrayBuffer();
    assert.equal(answer.headers.get("content-length"), String(byteLength), url);
  }
});
