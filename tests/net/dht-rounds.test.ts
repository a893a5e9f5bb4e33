import assert from "node:assert/strict";
import { test } from "node:test";
import type { PeerAddress } from "../../src/base/address.ts";
import type { Infohash } from "../../src/base/ids.ts";
import type { TaskEvents, TaskRequest } from "../../src/net/dht-driver.ts";
import { DhtPeerSearch } from "../../src/net/dht-peer-search.ts";
import { DhtPublisher } from "../../src/net/dht-publisher.ts";
import { FakeClock } from "../engine/fake-clock.ts";
import { keepingLog } from "../engine/parts.ts";

const INFOHASH = "ab".repeat(20) as Infohash;
const PEER: PeerAddress = { host: "81.2.3.4", port: 7 };

/** A driver whose tasks end immediately with `outcome`. */
function bench(outcome: { peers?: readonly PeerAddress[]; stored?: number }) {
  const clock = new FakeClock();
  const beganAt = clock.now();
  const requests: { request: TaskRequest; atMs: number }[] = [];
  const driver = {
    begin(request: TaskRequest, events: TaskEvents) {
      requests.push({ request, atMs: clock.now() - beganAt });
      if (outcome.peers) events.peers?.(outcome.peers);
      events.done({ queries: 1, answers: 1, stored: outcome.stored ?? 0 });
      return () => {};
    },
  };
  return { clock, driver, requests, log: keepingLog(), times: () => requests.map(({ atMs }) => atMs / 1000) };
}

test("DhtPeerSearch: looks up immediately, then at growing intervals; sooner with few peers; never after leaving", async () => {
  for (const [peers, found, times] of [
    [9, [PEER], [0, 60, 360, 1260, 2160]],
    [2, [PEER], [0, 60, 180, 300, 420]],
    [0, undefined, [0, 3, 13, 43, 103]],
  ] as const) {
    const { clock, driver, requests, log, times: seen } = bench(found ? { peers: found } : {});
    const announcement = { port: 9, isSeed: false };
    const search = new DhtPeerSearch({ driver, clock, log, announcement: () => announcement });
    const receivedPeers: PeerAddress[] = [];
    const target = { infohash: INFOHASH, announces: true, peers: () => peers };
    const leave = search.join({ ...target, found: (addresses) => receivedPeers.push(...addresses) });
    while (requests.length < 5) await clock.advance(1_000);
    assert.deepEqual(seen(), times);
    assert.deepEqual(receivedPeers.slice(0, 1), found ?? []);
    assert.ok(requests.every(({ request }) => request.kind === "peers" && request.announce === announcement));
    leave();
    assert.equal(clock.waiting, 0);
  }
});

test("DhtPeerSearch: a search without announce stores nothing in the DHT", () => {
  const { clock, driver, requests, log } = bench({});
  const search = new DhtPeerSearch({ driver, clock, log, announcement: () => ({ port: 9, isSeed: false }) });
  search.join({ infohash: INFOHASH, announces: false, peers: () => 0, found() {} })();
  assert.ok(requests[0]?.request.kind === "peers" && requests[0].request.announce === undefined);
});

test("DhtPublisher: puts an item every hour, and within a minute if it changed or no node stored it", async () => {
  const outcome = { stored: 8 };
  const { clock, driver, log, requests, times } = bench(outcome);
  const publisher = new DhtPublisher({ driver, clock, log });
  let sequence = 1;
  const signed = () => ({
    key: new Uint8Array(32),
    salt: new Uint8Array(0),
    sequence,
    signature: new Uint8Array(64),
  });
  const stop = publisher.publish(() => ({ value: new Uint8Array(1), signed: signed() }));
  await clock.advance(3_600_000);
  assert.deepEqual(times(), [0, 3600]);
  sequence = 2;
  outcome.stored = 0;
  await clock.advance(120_000);
  assert.deepEqual(times(), [0, 3600, 3660, 3720]);
  stop();
  await clock.advance(120_000);
  assert.equal(requests.length, 4);
  assert.equal(clock.waiting, 0);
});
