import assert from "node:assert/strict";
import { test } from "node:test";
import type { Infohash } from "../../../src/base/ids.ts";
import { instant } from "../../../src/base/time.ts";
import { type AnnounceStatus, TrackerList } from "../../../src/protocol/swarm/tracker-list.ts";
import type { AnnounceReply } from "../../../src/wire/tracker/announce.ts";
import { seededRandom } from "../../seeded-random.ts";

const at = (ms: number) => instant(ms);
const fed: AnnounceStatus = { uploaded: 1, downloaded: 2, left: 3, peers: 50, isPaused: false };
const hungry: AnnounceStatus = { ...fed, peers: 3 };
const starving: AnnounceStatus = { ...fed, peers: 0 };
const failure: AnnounceReply = { ok: false, reason: "time-out" };

function make(...tiers: string[][]): TrackerList {
  return new TrackerList({
    infohash: "a".repeat(40) as Infohash,
    peerId: new Uint8Array(20),
    listenPort: 6881,
    tiers,
    random: seededRandom(3),
  });
}

function ok(intervalSeconds: number, minIntervalSeconds?: number): AnnounceReply {
  return {
    ok: true,
    peers: [],
    intervalSeconds,
    ...(minIntervalSeconds !== undefined && { minIntervalSeconds }),
  };
}

test("TrackerList.due: announces to one tracker of every tier at the start", () => {
  const list = make(["http://a/1", "http://a/2"], ["http://b/1"], ["udp://c/1"]);
  const requests = list.due(starving, at(0));
  assert.equal(requests.length, 3);
  assert.ok(
    requests.every(({ event, numWant, port }) => event === "started" && numWant === 200 && port === 6881),
  );
  assert.equal(list.due(starving, at(1)).length, 0, "nothing more while answers are awaited");
  assert.equal(new Set(requests.map(({ key }) => key)).size, 1);
});

test("TrackerList.replied: after a failure the next tracker of the tier is tried at once", () => {
  const list = make(["http://a/1", "http://a/2"]);
  const [first] = list.due(starving, at(0));
  list.replied(first!.url, failure, at(100));
  const [second] = list.due(starving, at(100));
  assert.notEqual(second!.url, first!.url);
  list.replied(second!.url, ok(1800), at(200));
  assert.equal(list.due(fed, at(200 + 1_799_999)).length, 0);
  assert.equal(list.due(fed, at(200 + 1_800_000))[0]!.url, second!.url, "the working one went to the front");
});

test("TrackerList.replied: failures back off by 15 s · 2^n up to half an hour", () => {
  const list = make(["http://a/1"]);
  let now = 0;
  for (const seconds of [15, 30, 60, 120, 240, 480, 960, 1800, 1800]) {
    const [request] = list.due(starving, at(now));
    assert.ok(request, `due at ${now}`);
    list.replied(request.url, failure, at(now));
    assert.equal(list.nextWake(at(now)), now + seconds * 1000);
    assert.equal(list.due(starving, at(now + seconds * 1000 - 1)).length, 0);
    now += seconds * 1000;
  }
});

for (const { name, reply, status, seconds } of [
  { name: "the tracker's interval with enough peers", reply: ok(1800), status: fed, seconds: 1800 },
  { name: "5 minutes with few peers", reply: ok(1800), status: hungry, seconds: 300 },
  { name: "a minute with none", reply: ok(1800), status: starving, seconds: 60 },
  { name: "its minimum with few peers", reply: ok(1800, 900), status: starving, seconds: 900 },
  { name: "30 s at the least", reply: ok(1), status: fed, seconds: 30 },
  { name: "an hour at the most", reply: ok(1e9, 1e9), status: fed, seconds: 3600 },
  { name: "nonsense as the least", reply: ok(Number.NaN), status: fed, seconds: 30 },
]) {
  test(`TrackerList.nextWake: ${name}`, () => {
    const list = make(["http://a/1"]);
    const [request] = list.due(status, at(0));
    list.replied(request!.url, reply, at(0));
    assert.equal(list.nextWake(at(0)), seconds * 1000);
    assert.equal(list.due(status, at(seconds * 1000))[0]!.event, "none");
  });
}

test("TrackerList.due: sends `completed` once, `paused` while nothing more is wanted, and the tracker id", () => {
  const list = make(["http://a/1"]);
  const [request] = list.due(fed, at(0));
  const trackerId = new Uint8Array([7]);
  list.replied(request!.url, { ok: true, peers: [], intervalSeconds: 60, trackerId }, at(0));
  list.completed();
  assert.equal(list.nextWake(at(1)), 1);
  const [completed] = list.due(starving, at(1));
  assert.equal(completed!.event, "completed");
  assert.deepEqual(completed!.trackerId, trackerId);
  list.replied(request!.url, ok(60), at(1));
  const [paused] = list.due({ ...fed, isPaused: true }, at(70_000));
  assert.equal(paused!.event, "paused");
});

test("TrackerList.stop: sends `stopped` once, only to trackers that have answered", () => {
  const list = make(["http://a/1"], ["http://b/1"]);
  list.due(fed, at(0));
  list.replied("http://a/1", ok(1800), at(1));
  list.replied("http://b/1", failure, at(1));
  list.stop();
  const goodbyes = list.due(fed, at(2));
  assert.deepEqual(
    goodbyes.map(({ url, event, numWant }) => ({ url, event, numWant })),
    [{ url: "http://a/1", event: "stopped", numWant: 0 }],
  );
  assert.deepEqual(list.due(fed, at(3)), []);
  assert.equal(list.nextWake(at(3)), undefined);
});

test("TrackerList.due: an announce without a reply fails after two minutes", () => {
  const list = make(["http://a/1", "http://a/2"]);
  const [first] = list.due(starving, at(0));
  assert.equal(list.nextWake(at(0)), 120_000);
  const [second] = list.due(starving, at(120_000));
  assert.notEqual(second!.url, first!.url);
});

test("TrackerList.add: at most 40 trackers, each once", () => {
  const list = make(Array.from({ length: 100 }, (_, i) => `http://t/${i}`));
  assert.equal(list.size, 40);
  const small = make(["http://a/1"]);
  small.add([["http://a/1"], ["http://b/1"]]);
  assert.equal(small.size, 2);
  assert.equal(small.due(fed, at(0)).length, 2);
});

test("TrackerList.replied: an unexpected reply changes nothing", () => {
  const list = make(["http://a/1"]);
  list.replied("http://a/1", ok(60), at(0));
  list.replied("http://unknown/", ok(60), at(0));
  assert.equal(list.due(fed, at(0))[0]!.event, "started");
});

test("TrackerList.completed: retried after the usual delay if the announce failed", () => {
  const list = make(["http://a/1"]);
  const [started] = list.due(starving, at(0));
  list.replied(started!.url, ok(1800), at(10));
  list.completed();
  const [first] = list.due(fed, at(20));
  assert.equal(first!.event, "completed");
  list.replied(first!.url, failure, at(30));
  assert.equal(list.due(fed, at(40)).length, 0);
  assert.equal(list.nextWake(at(40)), 30 + 15_000);
  const [again] = list.due(fed, at(30 + 15_000));
  assert.equal(again!.event, "completed");
  list.replied(again!.url, ok(1800), at(20_000));
  assert.equal(list.due(fed, at(20_000 + 1_800_000))[0]!.event, "none");
});
