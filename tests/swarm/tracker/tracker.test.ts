import assert from "node:assert/strict";
import { test } from "node:test";
import { addressText, type PeerAddress } from "../../../src/base/address.ts";
import type { Infohash } from "../../../src/base/ids.ts";
import { seededRandom } from "../../../src/base/random.ts";
import { instant } from "../../../src/base/time.ts";
import type { TrackerAsker } from "../../../src/swarm/tracker/sight.ts";
import { Tracker, type TrackerSetup } from "../../../src/swarm/tracker/tracker.ts";
import type { AnnounceAnswer, AnnounceQuestion } from "../../../src/wire/tracker-server.ts";

const ONE = "1".repeat(40) as Infohash;
const OTHER = "2".repeat(40) as Infohash;
const NOW = instant(5_000);

const at = (host: string, port = 1): PeerAddress => ({ host, port });
const from = (host: string, isForeign = false): TrackerAsker => ({ host, isForeign });
const question = (more: Partial<AnnounceQuestion> = {}): AnnounceQuestion => ({
  infohash: ONE,
  port: 1,
  isSeed: false,
  event: "none",
  numWant: undefined,
  ...more,
});
const tracker = (more: Partial<TrackerSetup> = {}) =>
  new Tracker({
    isTracked: (infohash) => infohash === ONE,
    ownPlaces: () => [],
    random: seededRandom(3),
    ...more,
  });

function told(answer: ReturnType<Tracker["announce"]>): string[] {
  return (answer as AnnounceAnswer).peers.map(addressText).sort();
}

test("Tracker.announce: who asks is told of the others, not of itself, and is told of to them until it leaves", () => {
  const here = tracker();
  assert.deepEqual(told(here.announce(question({ event: "started" }), from("60.0.0.1"), NOW)), []);
  assert.deepEqual(told(here.announce(question({ port: 2 }), from("60.0.0.2"), NOW)), ["60.0.0.1:1"]);
  assert.deepEqual(told(here.announce(question(), from("60.0.0.1"), NOW)), ["60.0.0.2:2"]);
  assert.deepEqual(told(here.announce(question({ event: "stopped", port: 2 }), from("60.0.0.2"), NOW)), []);
  const last = here.announce(question(), from("60.0.0.1"), NOW) as AnnounceAnswer;
  assert.deepEqual([last.peers, last.counts], [[], { seeders: 0, leechers: 1, completed: 0 }]);
  assert.deepEqual([last.intervalSeconds, last.minIntervalSeconds], [600, 60]);
});

test("Tracker.announce: who only asks is not listed; what is not tracked is refused, and counted as nothing", () => {
  const here = tracker();
  here.announce(question(), from("60.0.0.1"), NOW);
  assert.deepEqual(told(here.announce(question({ port: 0 }), from("60.0.0.2"), NOW)), ["60.0.0.1:1"]);
  assert.equal(here.counts(ONE, NOW).leechers, 1);
  const refused = here.announce(question({ infohash: OTHER }), from("60.0.0.1"), NOW);
  assert.deepEqual(refused, { refused: "not tracked here", retryMinutes: "never" });
  assert.deepEqual(here.counts(OTHER, NOW), { seeders: 0, leechers: 0, completed: 0 });
});

const PEERS = ["60.0.0.9", "192.168.1.9", "127.0.0.1", "fd00::9", "2001:470::9"];
const SIGHTS: readonly (readonly [asker: TrackerAsker, sees: readonly string[]])[] = [
  [from("60.0.0.1"), ["60.0.0.9", "2001:470::9"]],
  [from("192.168.1.2"), ["60.0.0.9", "192.168.1.9", "fd00::9", "2001:470::9"]],
  [from("fe80::2"), ["60.0.0.9", "192.168.1.9", "fd00::9", "2001:470::9"]],
  [from("127.0.0.1"), PEERS],
  [from("::1"), PEERS],
  [from("192.168.1.2", true), ["60.0.0.9", "2001:470::9"]],
  [from("127.0.0.1", true), ["60.0.0.9", "2001:470::9"]],
];

for (const [asker, sees] of SIGHTS) {
  const who = `${asker.host}${asker.isForeign ? ", perhaps for a page of another site," : ""}`;
  test(`Tracker.announce: ${who} is told of ${sees.length} of five kinds of address`, () => {
    const here = tracker();
    for (const host of PEERS) here.announce(question({ port: 9 }), from(host), NOW);
    const seen = told(here.announce(question({ port: 0 }), asker, NOW));
    assert.deepEqual(seen, sees.map((host) => addressText(at(host, 9))).sort());
  });
}

test("Tracker.announce: a page of another site lists nobody of a home network, only the Internet's addresses", () => {
  const here = tracker();
  for (const host of ["192.168.1.2", "127.0.0.1", "60.0.0.5"])
    here.announce(question(), from(host, true), NOW);
  assert.deepEqual(told(here.announce(question({ port: 0 }), from("127.0.0.1"), NOW)), ["60.0.0.5:1"]);
});

test("Tracker.announce: our own places come first, to who may see them, and not to ourselves", () => {
  const places = [at("192.168.1.5", 8621), at("2001:470::5", 8621)];
  const here = tracker({ ownPlaces: () => places });
  for (let n = 0; n < 60; n++) here.announce(question(), from(`60.0.1.${n}`), NOW);
  const near = here.announce(question({ port: 0 }), from("192.168.1.2"), NOW) as AnnounceAnswer;
  assert.deepEqual(near.peers.slice(0, 2), places);
  assert.equal(near.peers.length, 50);
  const far = here.announce(question({ port: 0 }), from("60.0.0.1"), NOW) as AnnounceAnswer;
  assert.deepEqual(far.peers[0], places[1]);
  assert.ok(!told(far).includes("192.168.1.5:8621"));
  const self = here.announce(question({ port: 8621 }), from("192.168.1.5"), NOW);
  assert.ok(!told(self).some((text) => text.endsWith(":8621")));
});

test("Tracker.announce: as many peers as are wanted, of one IP version where that is asked for", () => {
  const here = tracker();
  for (let n = 0; n < 300; n++) here.announce(question(), from(`60.${n >> 8}.${n & 255}.1`), NOW);
  for (let n = 0; n < 5; n++) here.announce(question(), from(`2001:470:${n}::1`), NOW);
  const count = (numWant: number | undefined, family?: 4 | 6) =>
    told(here.announce(question({ numWant, port: 0 }), from("60.9.9.9"), NOW, family)).length;
  assert.deepEqual([count(undefined), count(7), count(0), count(5000)], [50, 7, 0, 200]);
  assert.ok(count(200, 6) <= 5);
  const four = told(here.announce(question({ numWant: 200, port: 0 }), from("60.9.9.9"), NOW, 4));
  assert.ok(four.length > 0 && !four.some((text) => text.startsWith("[")));
});

test("Tracker.announce: completions are counted once a peer", () => {
  const here = tracker();
  here.announce(question(), from("60.0.0.1"), NOW);
  for (let n = 0; n < 3; n++)
    here.announce(question({ event: "completed", isSeed: true }), from("60.0.0.1"), NOW);
  assert.deepEqual(here.counts(ONE, NOW), { seeders: 1, leechers: 0, completed: 1 });
});

test("Tracker.counts: who has been silent for two and a half intervals is forgotten", () => {
  const here = tracker();
  here.announce(question(), from("60.0.0.1"), NOW);
  assert.equal(here.counts(ONE, instant(NOW + 1_499_999)).leechers, 1);
  assert.equal(here.counts(ONE, instant(NOW + 1_500_000)).leechers, 0);
});

test("Tracker.admits: a household asks two hundred times at once, then five times a second; others go on", () => {
  const here = tracker();
  const admitted = (host: string, count: number, now: number) =>
    Array.from({ length: count }, () => here.admits(from(host), instant(now))).filter((no) => !no).length;
  assert.equal(admitted("60.0.0.1", 1000, 0), 200);
  assert.equal(admitted("60.0.0.2", 10, 0), 10);
  assert.equal(admitted("60.0.0.1", 1000, 10_000), 50);
  assert.equal(admitted("2001:470::1", 200, 0), 200);
  assert.equal(admitted("2001:470::ffff", 200, 0), 0);
});

test("Tracker.admits: ten thousand households are remembered, and the one that asked longest ago is forgotten", () => {
  const here = tracker();
  const refused = (host: string) => here.admits(from(host), NOW) !== undefined;
  const many = (first: number, count: number) => {
    for (let n = first; n < first + count; n++) refused(`60.${n >> 16}.${(n >> 8) & 255}.${n & 255}`);
  };
  const spent = "61.0.0.1";
  while (!refused(spent));
  many(0, 9_999);
  assert.ok(refused(spent));
  many(0, 10_000);
  assert.ok(!refused(spent));
});
