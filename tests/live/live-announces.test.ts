import assert from "node:assert/strict";
import { test } from "node:test";
import type { PeerAddress } from "../../src/base/address.ts";
import type { Infohash } from "../../src/base/ids.ts";
import { LiveAnnounces } from "../../src/live/live-announces.ts";
import type { AnnounceReply, AnnounceRequest } from "../../src/wire/tracker/announce.ts";
import { FakeClock, settled } from "../engine/fake-clock.ts";
import { keepingLog } from "../engine/parts.ts";
import { seededRandom } from "../seeded-random.ts";

const PEER = { host: "9.9.9.9", port: 9 };

/** Announces to a tracker whose replies the test sets. */
function bench(reply: AnnounceReply = { ok: true, peers: [PEER], intervalSeconds: 1_800 }) {
  const clock = new FakeClock();
  const asked: AnnounceRequest[] = [];
  const found: PeerAddress[] = [];
  const announces = new LiveAnnounces({
    infohash: "ab".repeat(20) as Infohash,
    peerId: new Uint8Array(20),
    listenPort: 4,
    trackers: [["http://tracker.example/announce"]],
    announcer: {
      announce: (request) => {
        asked.push(request);
        return Promise.resolve(reply);
      },
      scrape: () => Promise.resolve({ seeders: 1, leechers: 22 }),
    },
    random: seededRandom(1),
    clock,
    log: keepingLog(),
    found: (addresses) => void found.push(...addresses),
  });
  const round = async (peers: number) => {
    announces.round({ uploaded: 1, downloaded: 2, peers }, clock.now());
    await settled();
  };
  return { clock, asked, found, announces, round };
}

test("LiveAnnounces: announces itself as incomplete, and passes on the peers", async () => {
  const { asked, found, announces, round } = bench();
  await round(0);
  assert.equal(asked[0]?.event, "started");
  assert.equal(asked[0]?.left, 1);
  assert.deepEqual(found, [PEER]);
  assert.deepEqual(announces.figures().leechers, 22);
  assert.equal(announces.figures().answered, 1);
});

test("LiveAnnounces.requestPeers: announces as soon as the tracker allows, and not without a request", async () => {
  const { clock, asked, announces, round } = bench();
  await round(30);
  await clock.advance(61_000);
  await round(30);
  assert.equal(asked.length, 1);
  announces.requestPeers(clock.now());
  await round(30);
  assert.equal(asked.length, 2);
  announces.requestPeers(clock.now());
  await round(30);
  assert.equal(asked.length, 2);
});

test("LiveAnnounces.stop: sends stopped, and waits for at most two seconds", async () => {
  const { clock, asked, announces, round } = bench();
  await round(0);
  const stopped = announces.stop({ uploaded: 1, downloaded: 2, peers: 0 });
  await clock.advance(2_000);
  await stopped;
  assert.deepEqual(
    asked.map(({ event }) => event),
    ["started", "stopped"],
  );
  assert.equal(clock.waiting, 0);
});
