import assert from "node:assert/strict";
import { test } from "node:test";
import { activitySchema } from "../../routes/control/present-activity.ts";
import type { PlayerStatus, Players } from "../../routes/http/dependencies.ts";
import { ActivityFeed } from "../../src/activity/activity.ts";
import { LogRing } from "../../src/activity/log-ring.ts";
import type { Infohash } from "../../src/base/ids.ts";
import { FakeClock } from "../engine/fake-clock.ts";
import { base64, filmTorrent } from "../engine/fake-engine.ts";
import { type Call, fakeApp } from "./client.ts";

const HASH = "0123456789abcdef0123456789abcdef01234567";
const film = filmTorrent();
const START = { method: "POST", body: JSON.stringify({ transport_file_data: base64(film.bytes) }) };
const PLAYER = { headers: { "user-agent": "VLC/3.0" } };
const NEIGHBOUR = {
  remote: { host: "192.168.1.9", port: 50000 },
  local: { host: "192.168.1.5", port: 6878 },
};

/** An app with live data on a fake clock. */
function appWithActivity(players?: Players) {
  const clock = new FakeClock();
  const log = new LogRing();
  const listeners = new Set<() => void>();
  const engine = {
    figures: () => app.engine.figures(),
    onTransferOpened(opened: () => void) {
      listeners.add(opened);
      return () => listeners.delete(opened);
    },
  };
  const activity = new ActivityFeed({ clock, engine, log });
  const app: ReturnType<typeof fakeApp> = fakeApp({
    dependencies: { activity, ...(players && { players }) },
  });
  app.engine.onTransferOpened(() => {
    for (const opened of listeners) opened();
  });
  return { ...app, clock, log, activity };
}

/** Reads the events of `/api/events`: each call of `next` returns those of one tick by name. */
async function listen(app: ReturnType<typeof appWithActivity>, call?: Call, path = "/api/events") {
  const response = await app.call(path, call);
  assert.equal(response.status, 200);
  assert.equal(response.headers.get("content-type"), "text/event-stream");
  const reader = response.body!.getReader();
  return {
    async next() {
      const { value, done } = await reader.read();
      if (done) return undefined;
      const text = new TextDecoder().decode(value);
      const events = [...text.matchAll(/^event: (\w+)\ndata: (.*)$/gm)];
      // biome-ignore lint/suspicious/noExplicitAny: the tests read members by name.
      return new Map<string, any>(events.map(([, name, json]) => [name!, JSON.parse(json!)]));
    },
    cancel: () => reader.cancel(),
  };
}

test("/api/events: every number is the engine's own, and only what has changed is sent again", async () => {
  const app = appWithActivity();
  await app.call(`/ace/getstream?infohash=${HASH}&pid=a`, PLAYER);
  const events = await listen(app);
  const first = (await events.next())!;
  const { sessions, transfers } = app.engine.activity();
  assert.deepEqual(
    activitySchema.parse({ sessions: first.get("sessions"), transfers: first.get("transfers") }),
    {
      sessions: first.get("sessions"),
      transfers: first.get("transfers"),
    },
  );
  assert.deepEqual([sessions.length, transfers.length], [1, 1]);
  const [session] = first.get("sessions");
  assert.deepEqual([session.infohash, session.key], [HASH, sessions[0]!.key]);
  assert.deepEqual([session.player, session.address], ["VLC/3.0", "127.0.0.1"]);
  const [transfer] = first.get("transfers");
  const { figures, holders } = app.engine.figures().transfers[0]!;
  assert.deepEqual(
    [transfer.users, transfer.peers, transfer.downloaded, transfer.uploaded, transfer.speed_down],
    [holders, figures.connectedPeers, figures.downloaded, figures.uploaded, figures.bytesPerSecondDown],
  );
  const later = events.next();
  await app.clock.advance(1000);
  app.engine.stopTransfer(sessions[0]!.infohash);
  await app.clock.advance(1000);
  const changed = (await later)!;
  assert.deepEqual(changed.get("sessions"), []);
  assert.deepEqual(changed.get("transfers"), []);
  assert.equal(changed.has("broadcasts"), false);
  await events.cancel();
});

test("/api/events: content without metadata has the title of its playlist item", async () => {
  const app = appWithActivity();
  const content = { transport: "bt", contentId: null, url: null, magnet: null } as const;
  const infohash = HASH as Infohash;
  await app.library.items.add({ title: "News", content: { ...content, infohash } });
  await app.call(`/ace/getstream?infohash=${HASH}&pid=a`, PLAYER);
  await app.call(`/ace/getstream?infohash=${"6".repeat(40)}&pid=b`, PLAYER);
  const events = await listen(app);
  const names = (await events.next())!.get("transfers").map(({ name }: { name: string }) => name);
  assert.deepEqual(names, ["News", "6".repeat(40)]);
  await events.cancel();
});

test("/api/events: other hosts need the token, and learn no addresses of players", async () => {
  const app = appWithActivity();
  await app.call(`/ace/getstream?infohash=${HASH}&pid=a`, PLAYER);
  const away = { origin: NEIGHBOUR, host: "192.168.1.5:6878" };
  assert.equal((await app.call("/api/events", away)).status, 401);
  const token = await app.library.access.token();
  const events = await listen(app, { ...away, headers: { authorization: `Bearer ${token}` } });
  const [session] = (await events.next())!.get("sessions");
  assert.deepEqual([session.player, session.address], ["VLC/3.0", null]);
  await events.cancel();
});

test("the events of a session: a client of the network reads its own session and nothing else, until it ends", async () => {
  const app = appWithActivity();
  const away = { origin: NEIGHBOUR, host: "192.168.1.5:6878" };
  const { response } = await app.json("/ace/getstream?format=json&pid=a", { ...away, ...START });
  await app.call(`/ace/getstream?infohash=${HASH}&pid=b`, PLAYER);
  const path = `${new URL(response.stat_url).pathname}/events`;
  const events = await listen(app, away, path);
  const first = await events.next();
  assert.deepEqual([...first!.keys()], ["session"]);
  assert.deepEqual(first!.get("session"), (await app.json(response.stat_url, away)).response);
  const later = events.next();
  app.engine.session(film.infohash, path.split("/")[4]!)!.stop();
  await app.clock.advance(1000);
  assert.deepEqual((await later)!.get("session"), { ended: "unknown playback session id" });
  assert.equal(await events.next(), undefined);
  const forged = await listen(app, away, path.replace(/[0-9a-f]{32}/, "0".repeat(32)));
  assert.deepEqual((await forged.next())!.get("session"), { ended: "unknown playback session id" });
});

test("the events of a session: a session has one stream, which takes no place of the operator's", async () => {
  const app = appWithActivity();
  const { response } = await app.json("/ace/getstream?format=json&pid=a", START);
  const path = `${new URL(response.stat_url).pathname}/events`;
  const streams = [];
  for (let i = 0; i < 40; i++) streams.push(await listen(app, undefined, path));
  assert.equal(await streams[0]!.next(), undefined);
  assert.ok((await streams[39]!.next())?.has("session"));
  const [, , , , key] = path.split("/");
  const both = await listen(app, undefined, `/api/events?session=${film.infohash}/${key}`);
  const sent = await both.next();
  assert.equal(sent?.get("session").infohash, film.infohash);
  assert.equal(sent?.has("transfers"), true);
  for (const stream of [both, ...streams]) await stream.cancel();
});

test("/api/events: sends log lines and speeds once each", async () => {
  const app = appWithActivity();
  const line = { atMs: 1, level: "warn", part: "p2p", text: "slow" } as const;
  app.log.add(line);
  await app.clock.advance(5000);
  const events = await listen(app);
  const first = (await events.next())!;
  assert.deepEqual(first.get("log"), [{ ...line, number: 1 }]);
  assert.deepEqual(first.get("speeds").length, 1);
  app.log.add({ ...line, text: "slower" });
  const next = events.next();
  await app.clock.advance(1000);
  assert.deepEqual((await next)!.get("log"), [{ ...line, text: "slower", number: 2 }]);
  await events.cancel();
});

test("/api/events: sends the tasks with their outcome", async () => {
  const app = appWithActivity();
  const events = await listen(app);
  assert.deepEqual((await events.next())!.get("tasks"), []);
  const next = events.next();
  const form = new FormData();
  form.set("file", new File(["#EXTM3U\n"], "list.m3u"));
  const token = await app.library.access.token();
  const started = await app.json(
    `/server/api?${new URLSearchParams({ api_version: "3", method: "playlist_import", token })}`,
    { method: "POST", body: form },
  );
  await app.clock.advance(1000);
  const [task] = (await next)!.get("tasks");
  assert.equal(task.task_id, started.result.task_id);
  assert.equal(task.status, "done");
  await events.cancel();
});

test("/api/players/events: a client without the token sees players and what a device does, and nothing else", async () => {
  const tv = { id: "dlna:1", type: "aircast", protocol: null, name: "TV", icon: null } as const;
  const listed: (typeof tv)[] = [];
  let answer: (status: PlayerStatus) => void = () => {};
  const players: Players = {
    list: async (_, options) => {
      assert.deepEqual(options, { waits: false });
      return listed;
    },
    open: async () => {},
    control: async () => {},
    status: () => new Promise((resolve) => (answer = resolve)),
  };
  const app = appWithActivity(players);
  const away = { origin: NEIGHBOUR, host: "192.168.1.5:6878" };
  const list = await listen(app, away, "/api/players/events?players=1");
  assert.deepEqual([...(await list.next())!], [["players", []]]);
  const found = list.next();
  listed.push(tv);
  await app.clock.advance(1000);
  assert.deepEqual([...(await found)!], [["players", [tv]]]);
  await list.cancel();
  // A device that has not answered yet delays no other event.
  const owner = await listen(app, undefined, "/api/events?device=dlna%3A1");
  assert.equal((await owner.next())!.has("device"), false);
  answer({ state: "paused", volume: 0.5, positionSeconds: 7, durationSeconds: 60, title: "Film" });
  const status = owner.next();
  await app.clock.advance(1000);
  assert.deepEqual((await status)!.get("device"), {
    ...{ status: "paused", volume: 0.5, position: 7, duration: 60, title: "Film" },
  });
  await owner.cancel();
});

test("ActivityFeed: a reader that does not pull causes no work, and streams are limited", async () => {
  const { activity, clock } = appWithActivity();
  const timers = clock.waiting;
  const streams = Array.from({ length: 32 }, () => activity.ticks("engine"));
  assert.equal(clock.waiting, timers);
  assert.throws(() => activity.ticks("engine"), /32 pages/);
  for (const stream of streams) await stream.cancel();
  await activity.ticks("engine").cancel();
});

test("/api/events: requests with HEAD hold no place", async () => {
  const app = appWithActivity();
  for (let i = 0; i < 40; i++) assert.equal((await app.call("/api/events", { method: "HEAD" })).status, 200);
  const events = await listen(app);
  assert.ok((await events.next())!.has("status"));
  await events.cancel();
});

test("LogRing: keeps the latest 2,000 lines and numbers all of them", () => {
  const ring = new LogRing();
  for (let i = 1; i <= 5_000; i++) ring.add({ atMs: i, level: "info", part: "", text: String(i) });
  assert.deepEqual([ring.after(0).length, ring.after(0)[0]?.number], [2_000, 3_001]);
  assert.deepEqual(
    ring.after(4_998).map(({ text }) => text),
    ["4999", "5000"],
  );
  assert.deepEqual(ring.after(5_000), []);
});

test("SpeedHistory: keeps one hour of samples; an idle engine has no timer for them", async () => {
  const { activity, clock } = appWithActivity();
  for (let i = 0; i < 73; i++) await clock.advance(50_000);
  assert.equal(clock.waiting, 0);
  const { speeds } = activity;
  assert.equal(speeds.length, 720);
  // The samples of the idle time are 5 s apart, the last one at most 5 s old.
  for (let i = 1; i < speeds.length; i++) assert.equal(speeds[i]!.at - speeds[i - 1]!.at, 5);
  assert.ok(clock.unixSeconds() - speeds.at(-1)!.at < 5);
  activity.close();
});

test("SpeedHistory: samples while a transfer is open, whether the history is read or not", async () => {
  const app = appWithActivity();
  const { activity, clock } = app;
  await clock.advance(100_000);
  assert.equal(clock.waiting, 0);
  await app.call(`/ace/getstream?infohash=${HASH}&pid=a`, PLAYER);
  assert.equal(clock.waiting, 1);
  await clock.advance(20_000);
  const open = activity.speeds.filter(({ transfers }) => transfers[0]?.infohash === HASH);
  assert.deepEqual([activity.speeds.length, open.length], [24, 4]);
  // After the end of the transfer it stops again.
  await app.json(
    `/server/api?${new URLSearchParams({ api_version: "3", method: "transfer_stop", token: await app.library.access.token(), infohash: HASH })}`,
  );
  await clock.advance(10_000);
  assert.equal(clock.waiting, 0);
  assert.equal(activity.speeds.length, 26);
  activity.close();
});

test("transfer_stop and get_piece_map: need an open transfer", async () => {
  const app = appWithActivity();
  const token = await app.library.access.token();
  const call = (method: string, infohash: string) =>
    app.json(`/server/api?${new URLSearchParams({ api_version: "3", method, token, infohash })}`);
  assert.match((await call("transfer_stop", "xy")).error.message, /40 hexadecimal digits/);
  assert.match((await call("transfer_stop", HASH)).error.message, /unknown playback session/);
  await app.call(`/ace/getstream?infohash=${HASH}&pid=a`, PLAYER);
  assert.equal((await call("transfer_stop", HASH)).result, "ok");
  assert.deepEqual(app.engine.activity(), { sessions: [], transfers: [] });
  assert.equal((await call("get_piece_map", HASH)).result, "");
});
