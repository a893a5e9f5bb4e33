import assert from "node:assert/strict";
import { test } from "node:test";
import { rawMedia } from "../../src/remux/raw-media.ts";
import { base64, filmTorrent } from "../engine/fake-engine.ts";
import { fakeApp } from "./client.ts";

const film = filmTorrent();
const post = { method: "POST", body: JSON.stringify({ transport_file_data: base64(film.bytes) }) };
const UNKNOWN = "unknown playback session id";

async function appWithSession(query = "", options: Parameters<typeof fakeApp>[0] = {}) {
  const app = fakeApp(options);
  const { response } = await app.json(`/ace/getstream?format=json${query}`, {
    method: "POST",
    body: JSON.stringify({ transport_file_data: base64(film.bytes) }),
  });
  return { ...app, session: response };
}

test("stat: every member of the interface, with the figures of the transfer", async () => {
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

for (const [compat, word] of [
  ["document", "prefuf"],
  ["deployed", "err"],
] as const)
  test(`stat: reports a failed start as ${word} with compat ${compat}, until the session ends`, async () => {
    const app = fakeApp({ hasData: false, settings: { peersTimeoutMs: 5_000, compat } });
    const start = app.json(`/ace/getstream?format=json&magnet=magnet:?xt=urn:btih:${film.infohash}`);
    await app.clock.advance(6_000);
    const { stat_url } = (await start).response;
    const { response, error } = await app.json(stat_url);
    assert.deepEqual([response.status, error], [word, null]);
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

test("stop: answers ok; afterwards stat, commands and events report an unknown session", async () => {
  const { json, call, session } = await appWithSession("&use_api_events=1");
  assert.deepEqual(
    await (await call(`${session.command_url}?method=stop`)).text(),
    '{"response": "ok", "error": null}',
  );
  for (const name of ["download_started", "download_stopped"])
    assert.equal((await json(session.event_url)).response.name, name, "events stay until they are fetched");
  for (const url of [session.stat_url, `${session.command_url}?method=stop`, session.event_url]) {
    const answer = await json(url);
    assert.deepEqual([answer.status, answer.response, answer.error], [200, null, UNKNOWN], url);
  }
  assert.equal((await call(session.playback_url)).status, 403);
  assert.equal((await call(session.playback_url.replace("/ace/r/", "/content/"))).status, 403);
});

test("stop: api_version=2 gets the control envelope, also for errors", async () => {
  const { json, session } = await appWithSession();
  const ok = await json(`${session.command_url}?method=stop&api_version=2`);
  assert.deepEqual([ok.result, ok.error], ["ok", null]);
  const gone = await json(`${session.command_url}?method=stop&api_version=2`);
  assert.deepEqual(gone.error, { message: UNKNOWN, code: 0 });
});

test("commands: each refused command names the reason", async () => {
  const { json, session } = await appWithSession();
  const error = async (query: string) => (await json(`${session.command_url}?${query}`)).error;
  assert.match(await error("method=liveseek&pos=-1"), /not a live stream/);
  assert.match(await error("method=set_stream&stream_index=1"), /only one stream/);
  assert.match(await error("method=dance"), /unknown method dance/);
  assert.match(await error(""), /method is missing/);
  assert.match(await error("method=set_player_activity_timeout&timeout=0"), /expected 1 to 86400 seconds/);
  assert.match(await error("method=set_player_activity_timeout"), /got nothing/);
});

test("set_player_activity_timeout: sets the idle timeout of the session", async () => {
  const { json, session, clock } = await appWithSession();
  const set = await json(`${session.command_url}?method=set_player_activity_timeout&timeout=300`);
  assert.equal(set.response, "ok");
  await clock.advance(299_000);
  assert.equal((await json(`${session.stat_url}?skip_player_activity=1`)).error, null);
  await clock.advance(2_000);
  assert.equal((await json(session.stat_url)).error, UNKNOWN);
});

test("event: waits 15 s for an event, then returns null; a stop ends the wait", async () => {
  const { json, session, clock, engine } = await appWithSession("&use_api_events=1");
  assert.equal((await json(session.event_url)).response.name, "download_started");
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

test("a player that starts other content: streams of the old session end, and its URLs are unknown", async () => {
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

test("stat: reports the programs that read it, as plain text", async () => {
  const read: string[] = [];
  const { json, session } = await appWithSession("", {
    dependencies: { statRead: (program) => read.push(program) },
  });
  await json(session.stat_url, { headers: { "user-agent": "Python-urllib/3.11<b>" } });
  assert.deepEqual(read, ["Python-urllib/3.11b"]);
});

test("session URLs: an unknown key or infohash is an error", async () => {
  const { json, call, session } = await appWithSession();
  for (const url of [session.stat_url.slice(0, -1), `/ace/stat/${"0".repeat(40)}/x`, "/ace/stat/zz/x"])
    assert.equal((await json(url)).error, UNKNOWN);
  assert.equal((await call(`/ace/m/${film.infohash}/nothing.m3u8`)).status, 403);
  assert.equal((await call(session.playback_url.replace("/ace/r/", "/ace/m/"))).status, 403);
});

test("session URLs: endings that clients append are ignored", async () => {
  const { json, call, session } = await appWithSession();
  for (const end of ["&.mp4", "?", "?x=1", ".m3u8", "&.mp4?x=1"]) {
    assert.equal((await json(`${session.stat_url}${end}`)).error, null, end);
    const stream = await call(`${session.playback_url}${end}`);
    assert.equal(stream.status, 200, end);
    await stream.body?.cancel();
  }
});

test("HEAD of the event URL: answers at once and consumes no event", async () => {
  const { json, call, session } = await appWithSession("&use_api_events=1");
  assert.equal((await call(session.event_url, { method: "HEAD" })).status, 200);
  assert.equal((await json(session.event_url)).response.name, "download_started");
  const waiting = json(session.event_url);
  await json(`${session.command_url}?method=stop`);
  assert.equal((await waiting).response.name, "download_stopped");
});

test("JSON and error texts have a content-length in bytes", async () => {
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

/** An app whose content is this raw format, as `openMedia` describes it. */
function rawApp(mime: string) {
  const app = fakeApp();
  app.transfers.prepare = (transfer) => {
    transfer.bringData();
    const { container, rawMime, tsProblem, fmp4Problem, segments } = rawMedia({ name: "Raw", mime });
    Object.assign(transfer.media_, { container, rawMime, tsProblem, fmp4Problem, segments });
  };
  return app;
}

test("a file that is not remuxed is played as it is: by range, with its type and length", async () => {
  const app = rawApp("video/x-msvideo");
  const { response } = await app.json(`/ace/getstream?format=json`, post);
  const whole = await app.call(response.playback_url);
  assert.equal(whole.headers.get("content-type"), "video/x-msvideo");
  const size = Number(whole.headers.get("content-length"));
  assert.equal((await whole.arrayBuffer()).byteLength, size);
  const part = await app.call(response.playback_url, { headers: { range: "bytes=1000-1999" } });
  assert.deepEqual([part.status, part.headers.get("content-range")], [206, `bytes 1000-1999/${size}`]);
  assert.deepEqual(
    new Uint8Array(await part.arrayBuffer()).subarray(0, 3),
    Uint8Array.of(1000 & 255, 1001 & 255, 1002 & 255),
  );
  const head = await app.call(response.playback_url, { method: "HEAD" });
  assert.equal(head.headers.get("content-length"), String(size));
  assert.equal((await app.call(response.playback_url, { headers: { range: `bytes=${size}-` } })).status, 416);
});

test("HLS of a file that is not remuxed: an error with advice; music is played as it is", async () => {
  const video = await rawApp("video/x-flv").json("/ace/manifest.m3u8?format=json", post);
  assert.match(video.error, /^failed to start: Raw files are not remuxed; request \/ace\/getstream/);
  const app = rawApp("audio/flac");
  const { response } = await app.json("/ace/manifest.m3u8?format=json", post);
  const manifest = await app.call(response.playback_url);
  assert.equal(manifest.status, 302);
  const music = await app.call(manifest.headers.get("location")!, { headers: { range: "bytes=0-9" } });
  assert.deepEqual([music.status, music.headers.get("content-type")], [206, "audio/flac"]);
  await music.arrayBuffer();
});

test("a body of known length fails when its session ends", async () => {
  const app = rawApp("audio/mpeg");
  const { response } = await app.json("/ace/getstream?format=json", post);
  const reader = (await app.call(response.playback_url)).body!.getReader();
  await reader.read();
  await app.call(`${response.command_url}?method=stop`);
  await assert.rejects(reader.read(), { code: "session_stopped" });
});

test("container=raw: a film is the file itself, of known length, with the type of its name", async () => {
  const app = await appWithSession("&container=raw");
  const part = await app.call(app.session.playback_url, { headers: { range: "bytes=5000-5009" } });
  assert.deepEqual([part.status, part.headers.get("content-type")], [206, "video/mp4"]);
  assert.deepEqual(
    new Uint8Array(await part.arrayBuffer()),
    Uint8Array.from({ length: 10 }, (_, i) => (5000 + i) & 255),
  );
});

test("mime=: the answer has another name of its own type, and no other type", async () => {
  const { call, session } = await appWithSession();
  for (const [name, type] of [
    ["video/mpeg", "video/mpeg"],
    ["video/vnd.dlna.mpeg-tts", "video/vnd.dlna.mpeg-tts"],
    ["text/html", "video/mp2t"],
  ] as const) {
    const head = await call(`${session.playback_url}?mime=${name}`, { method: "HEAD" });
    assert.equal(head.headers.get("content-type"), type);
  }
});
