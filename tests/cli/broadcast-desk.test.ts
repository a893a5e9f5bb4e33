import assert from "node:assert/strict";
import { test } from "node:test";
import { SluiceError } from "../../src/base/errors.ts";
import { type Log, SILENT_LOG } from "../../src/base/log.ts";
import { KeptBroadcasts } from "../../src/cli/broadcast-desk.ts";
import { broadcastRequest } from "../../src/cli/broadcast-request.ts";
import { createBroadcastRecords } from "../../src/library/broadcast-records.ts";
import type { Broadcast, Broadcasts } from "../../src/live/broadcast/broadcast-contract.ts";
import { FakeClock, settled } from "../engine/fake-clock.ts";
import { MapStore } from "../library/map-store.ts";
import { fakeBroadcast, fakeBroadcastOptions } from "../routes/fake-broadcasts.ts";

/** Broadcasts that start, end and fail on demand. */
function fakeBroadcasts() {
  const live = new Map<string, { broadcast: Broadcast; end: () => void; fail: (why: string) => void }>();
  let failure: string | undefined;
  let silence: Promise<void> | undefined;
  let started = 0;
  const broadcasts: Broadcasts = {
    async start(request, signal) {
      started++;
      await silence;
      if (signal?.aborted) throw new SluiceError("cancelled", "given up");
      if (failure !== undefined) throw new SluiceError("url_unreachable", failure);
      const { name } = request;
      const ended = Promise.withResolvers<void>();
      ended.promise.catch(() => {});
      const over = (settle: () => void) => {
        live.delete(name);
        settle();
      };
      const end = () => over(ended.resolve);
      const fail = (why: string) => over(() => ended.reject(new SluiceError("url_unreachable", why)));
      const broadcast = { ...fakeBroadcast(name), request, ended: ended.promise, stop: async () => end() };
      live.set(name, { broadcast, end, fail });
      return broadcast;
    },
    get: (name) => live.get(name)?.broadcast,
    all: () => [...live.values()].map(({ broadcast }) => broadcast),
    async close() {
      for (const { end } of [...live.values()]) end();
    },
  };
  return {
    broadcasts,
    live,
    started: () => started,
    /** Makes starts wait until the returned function is called. */
    beSilent() {
      const { promise, resolve } = Promise.withResolvers<void>();
      silence = promise;
      return resolve;
    },
    failWith(why: string | undefined) {
      failure = why;
    },
  };
}

/** Opens a `KeptBroadcasts` on records that survive it. */
async function opened(store = new MapStore(), fake = fakeBroadcasts(), log: Log = SILENT_LOG) {
  const clock = new FakeClock();
  const desk = new KeptBroadcasts({
    broadcasts: fake.broadcasts,
    records: createBroadcastRecords(store, SILENT_LOG),
    clock,
    log,
    relayPass: async () => "",
    requestOf: (wish) =>
      broadcastRequest(wish, { lookup: async () => [], ownAddresses: [], tracker: "off" as const }),
  });
  await desk.restore();
  await settled();
  return { desk, clock, store, ...fake };
}

test("KeptBroadcasts: broadcasts are on air again after a restart, until they are stopped", async () => {
  const first = await opened();
  const { name } = await first.desk.start({ ...fakeBroadcastOptions(""), title: "A clock" });
  assert.equal(name, "test-pattern");
  first.desk.close();
  await first.broadcasts.close();
  await settled();

  const second = await opened(first.store);
  assert.equal(second.desk.list()[0]?.broadcast?.request.meta.title, "A clock");
  await second.desk.stop(name);
  assert.deepEqual([second.desk.list().length, second.live.size], [0, 0]);
  assert.equal((await opened(first.store)).desk.list().length, 0);
});

test("KeptBroadcasts: logs the start and end of broadcasts", async () => {
  const lines: string[] = [];
  const info = (message: string, facts?: object) => void lines.push(`${message} ${JSON.stringify(facts)}`);
  const { desk, live } = await opened(undefined, undefined, { ...SILENT_LOG, info });
  await desk.start(fakeBroadcastOptions("news"));
  live.get("news")!.end();
  await settled();
  assert.match(lines[0] ?? "", /^on air .*"name":"news","infohash":"[0-9a-f]{40}"/);
  assert.match(lines[1] ?? "", /has ended.*"name":"news"/);
});

test("KeptBroadcasts: a start that fails keeps nothing", async () => {
  const { desk, store, failWith, clock, started } = await opened();
  failWith("nothing answers");
  await assert.rejects(desk.start(fakeBroadcastOptions("news")), { code: "url_unreachable" });
  store.failure = new SluiceError("disk_full", "full");
  failWith(undefined);
  await assert.rejects(desk.start(fakeBroadcastOptions("news")), { code: "disk_full" });
  store.failure = undefined;
  await clock.advance(3_600_000);
  assert.deepEqual([desk.list().length, store.records.size, started()], [0, 0, 2]);
});

test("KeptBroadcasts: a later failure is reported and retried at growing intervals", async () => {
  const { desk, live, failWith, clock, started } = await opened();
  await desk.start(fakeBroadcastOptions("news"));
  failWith("still away");
  live.get("news")!.fail("went away");
  await settled();
  assert.deepEqual([desk.list()[0]?.problem, desk.list()[0]?.broadcast], ["went away", undefined]);
  const tries: number[] = [];
  for (let second = 1; second <= 900; second++) {
    const before = started();
    await clock.advance(1000);
    if (started() > before) tries.push(second);
  }
  assert.deepEqual(tries, [10, 30, 70, 150, 310, 610]);
  failWith(undefined);
  await clock.advance(300_000);
  assert.deepEqual([desk.list()[0]?.problem, live.size], [undefined, 1]);
});

test("KeptBroadcasts: a broadcast that is being retried can be started and stopped", async () => {
  const { desk, live, failWith, clock, started } = await opened();
  await desk.start(fakeBroadcastOptions("news"));
  failWith("away");
  live.get("news")!.fail("away");
  await settled();
  await assert.rejects(desk.start(fakeBroadcastOptions("news")));
  assert.equal(desk.list().length, 1);
  failWith(undefined);
  await desk.start({ ...fakeBroadcastOptions("news"), title: "Anew" });
  assert.deepEqual([desk.list().length, desk.list()[0]?.broadcast?.request.meta.title], [1, "Anew"]);
  const before = started();
  await clock.advance(3_600_000);
  assert.equal(started(), before, "no retry is left over");
  await desk.stop("news");
  assert.equal(desk.list().length, 0);
});

test("KeptBroadcasts: a file that has ended does not start again at the next start", async () => {
  const { desk, live, store } = await opened();
  await desk.start({ ...fakeBroadcastOptions("film"), source: "/film.ts" });
  live.get("film")!.end();
  await settled();
  assert.deepEqual([desk.list().length, store.records.size], [0, 0]);
});

test("KeptBroadcasts: lists and stops the broadcasts of external playlists too", async () => {
  const { desk, broadcasts, live } = await opened();
  const parts = { lookup: async () => [], ownAddresses: [], tracker: "off" as const };
  await broadcasts.start(await broadcastRequest(fakeBroadcastOptions("theirs"), parts));
  assert.deepEqual(
    desk.list().map(({ name, options }) => [name, options]),
    [["theirs", undefined]],
  );
  await desk.stop("theirs");
  assert.equal(live.size, 0);
  await assert.rejects(desk.stop("theirs"), { code: "unknown_broadcast" });
});

test("KeptBroadcasts: refuses a name that is on air, pipes, relative files, and a seventeenth broadcast", async () => {
  const { desk } = await opened();
  await desk.start(fakeBroadcastOptions("news"));
  const refused = (wish: object, code: string) =>
    assert.rejects(desk.start({ ...fakeBroadcastOptions("other"), ...wish }), { code });
  await refused({ name: "news" }, "bad_parameter");
  await refused({ source: "-" }, "bad_parameter");
  await refused({ source: "film.ts" }, "bad_parameter");
  await refused({ name: "../etc" }, "bad_parameter");
  const [one, two] = [desk.start(fakeBroadcastOptions("twice")), desk.start(fakeBroadcastOptions("twice"))];
  await one;
  await assert.rejects(two, { code: "bad_parameter" });
  for (let i = 3; i <= 16; i++) await desk.start(fakeBroadcastOptions(`number ${i}`));
  await refused({}, "too_many");
});

test("KeptBroadcasts.stop: cancels a pending start for good", async () => {
  const { desk, live, store, beSilent, failWith, broadcasts, clock } = await opened();
  const speak = beSilent();
  const starting = desk.start({ ...fakeBroadcastOptions("udp://239.0.0.1:1234"), name: "slow" });
  await settled();
  await desk.stop("slow");
  speak();
  await assert.rejects(starting, (error) => error instanceof SluiceError && error.code === "cancelled");
  assert.deepEqual([desk.list().length, live.size], [0, 0]);
  // The same for a failed broadcast that is started while it waits for its retry.
  await desk.start({ ...fakeBroadcastOptions("udp://239.0.0.1:1234"), name: "slow" });
  failWith("gone");
  live.get("slow")!.fail("gone");
  await settled();
  failWith(undefined);
  const speakAgain = beSilent();
  const again = desk.start({ ...fakeBroadcastOptions("udp://239.0.0.1:1234"), name: "slow" });
  await settled();
  await desk.stop("slow");
  speakAgain();
  await assert.rejects(again);
  await clock.advance(600_000);
  assert.deepEqual([desk.list().length, broadcasts.all().length], [0, 0]);
  assert.equal((await opened(store)).desk.list().length, 0);
  assert.equal(clock.waiting, 0);
});
