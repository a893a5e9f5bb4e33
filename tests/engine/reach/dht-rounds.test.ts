import assert from "node:assert/strict";
import { test } from "node:test";
import type { PeerAddress } from "../../../src/base/address.ts";
import type { Infohash } from "../../../src/base/ids.ts";
import type { TaskEvents, TaskWish } from "../../../src/engine/reach/dht-driver.ts";
import { DhtJoins } from "../../../src/engine/reach/dht-joins.ts";
import { DhtKeeps } from "../../../src/engine/reach/dht-keeps.ts";
import { FakeClock } from "../fake-clock.ts";
import { keepingLog } from "../parts.ts";

const INFOHASH = "ab".repeat(20) as Infohash;
const PEER: PeerAddress = { host: "81.2.3.4", port: 7 };

/** A driver whose tasks end at once, as the test says. */
function bench(outcome: { peers?: readonly PeerAddress[]; stored?: number }) {
  const clock = new FakeClock();
  const beganAt = clock.now();
  const wishes: { wish: TaskWish; atMs: number }[] = [];
  const driver = {
    begin(wish: TaskWish, events: TaskEvents) {
      wishes.push({ wish, atMs: clock.now() - beganAt });
      if (outcome.peers) events.peers?.(outcome.peers);
      events.done({ queries: 1, answers: 1, stored: outcome.stored ?? 0 });
      return () => {};
    },
  };
  return { clock, driver, wishes, log: keepingLog(), times: () => wishes.map(({ atMs }) => atMs / 1000) };
}

test("DhtJoins: looks at once, then ever more seldom, sooner where peers are few, and never after it was left", async () => {
  for (const [peers, found, times] of [
    [9, [PEER], [0, 60, 360, 1260, 2160]],
    [2, [PEER], [0, 60, 180, 300, 420]],
    [0, undefined, [0, 3, 13, 43, 103]],
  ] as const) {
    const { clock, driver, wishes, log, times: seen } = bench(found ? { peers: found } : {});
    const announcement = { port: 9, isSeed: false };
    const joins = new DhtJoins({ driver, clock, log, announcement: () => announcement });
    const heard: PeerAddress[] = [];
    const wish = { infohash: INFOHASH, announces: true, peers: () => peers };
    const leave = joins.join({ ...wish, found: (addresses) => heard.push(...addresses) });
    while (wishes.length < 5) await clock.advance(1_000);
    assert.deepEqual(seen(), times);
    assert.deepEqual(heard.slice(0, 1), found ?? []);
    assert.ok(wishes.every(({ wish }) => wish.kind === "peers" && wish.announce === announcement));
    leave();
    assert.equal(clock.waiting, 0);
  }
});

test("DhtJoins: who only looks tells nobody of himself", () => {
  const { clock, driver, wishes, log } = bench({});
  const joins = new DhtJoins({ driver, clock, log, announcement: () => ({ port: 9, isSeed: false }) });
  joins.join({ infohash: INFOHASH, announces: false, peers: () => 0, found() {} })();
  assert.ok(wishes[0]?.wish.kind === "peers" && wishes[0].wish.announce === undefined);
});

test("DhtKeeps: puts an item hourly, within a minute where it changed or nobody took it", async () => {
  const outcome = { stored: 8 };
  const { clock, driver, log, wishes, times } = bench(outcome);
  const keeps = new DhtKeeps({ driver, clock, log });
  let sequence = 1;
  const signed = () => ({
    key: new Uint8Array(32),
    salt: new Uint8Array(0),
    sequence,
    signature: new Uint8Array(64),
  });
  const stop = keeps.keep(() => ({ value: new Uint8Array(1), signed: signed() }));
  await clock.advance(3_600_000);
  assert.deepEqual(times(), [0, 3600]);
  sequence = 2;
  outcome.stored = 0;
  await clock.advance(120_000);
  assert.deepEqual(times(), [0, 3600, 3660, 3720]);
  stop();
  await clock.advance(120_000);
  assert.equal(wishes.length, 4);
  assert.equal(clock.waiting, 0);
});
