import assert from "node:assert/strict";
import { test } from "node:test";
import { addressText, type PeerAddress } from "../../../src/base/address.ts";
import type { Infohash } from "../../../src/base/ids.ts";
import { instant } from "../../../src/base/time.ts";
import { Tracker } from "../../../src/protocol/tracker/tracker.ts";
import type { TrackerClient } from "../../../src/protocol/tracker/visibility.ts";
import type { TrackerServerAnnounce, TrackerServerResponse } from "../../../src/wire/tracker/server.ts";
import { seededRandom } from "../../seeded-random.ts";

const ONE = "1".repeat(40) as Infohash;
const OTHER = "2".repeat(40) as Infohash;
const NOW = instant(5_000);

const at = (host: string, port = 1): PeerAddress => ({ host, port });
const from = (host: string, isForeign = false): TrackerClient => ({ host, isForeign });
const announce = (more: Partial<TrackerServerAnnounce> = {}): TrackerServerAnnounce => ({
  infohash: ONE,
  port: 1,
  isSeed: false,
  event: "none",
  numWant: undefined,
  ...more,
});
const tracker = (more: Partial<ConstructorParameters<typeof Tracker>[0]> = {}) =>
  new Tracker({
    isTracked: (infohash) => infohash === ONE,
    ownAddresses: () => [],
    random: seededRandom(3),
    ...more,
  });

function peersIn(answer: ReturnType<Tracker["announce"]>): string[] {
  return (answer as TrackerServerResponse).peers.map(addressText).sort();
}

test("Tracker.announce: a client receives the other peers, and is returned to them until it stops", () => {
  const here = tracker();
  assert.deepEqual(peersIn(here.announce(announce({ event: "started" }), from("60.0.0.1"), NOW)), []);
  assert.deepEqual(peersIn(here.announce(announce({ port: 2 }), from("60.0.0.2"), NOW)), ["60.0.0.1:1"]);
  assert.deepEqual(peersIn(here.announce(announce(), from("60.0.0.1"), NOW)), ["60.0.0.2:2"]);
  assert.deepEqual(
    peersIn(here.announce(announce({ event: "stopped", port: 2 }), from("60.0.0.2"), NOW)),
    [],
  );
  const last = here.announce(announce(), from("60.0.0.1"), NOW) as TrackerServerResponse;
  assert.deepEqual([last.peers, last.counts], [[], { seeders: 0, leechers: 1, completed: 0 }]);
  assert.deepEqual([last.intervalSeconds, last.minIntervalSeconds], [600, 60]);
});

test("Tracker.announce: a client without a port is not listed; untracked content is refused and counts zero", () => {
  const here = tracker();
  here.announce(announce(), from("60.0.0.1"), NOW);
  assert.deepEqual(peersIn(here.announce(announce({ port: 0 }), from("60.0.0.2"), NOW)), ["60.0.0.1:1"]);
  assert.equal(here.counts(ONE, NOW).leechers, 1);
  const refused = here.announce(announce({ infohash: OTHER }), from("60.0.0.1"), NOW);
  assert.deepEqual(refused, { refused: "not tracked here", retryMinutes: "never" });
  assert.deepEqual(here.counts(OTHER, NOW), { seeders: 0, leechers: 0, completed: 0 });
});

const PEERS = ["60.0.0.9", "192.168.1.9", "127.0.0.1", "fd00::9", "2001:470::9"];
const VISIBLE: readonly (readonly [client: TrackerClient, sees: readonly string[]])[] = [
  [from("60.0.0.1"), ["60.0.0.9", "2001:470::9"]],
  [from("192.168.1.2"), ["60.0.0.9", "192.168.1.9", "fd00::9", "2001:470::9"]],
  [from("fe80::2"), ["60.0.0.9", "192.168.1.9", "fd00::9", "2001:470::9"]],
  [from("127.0.0.1"), PEERS],
  [from("::1"), PEERS],
  [from("192.168.1.2", true), ["60.0.0.9", "2001:470::9"]],
  [from("127.0.0.1", true), ["60.0.0.9", "2001:470::9"]],
];

for (const [client, sees] of VISIBLE) {
  const name = `${client.host}${client.isForeign ? " (page of another site)" : ""}`;
  test(`Tracker.announce: ${name} receives ${sees.length} of five kinds of address`, () => {
    const here = tracker();
    for (const host of PEERS) here.announce(announce({ port: 9 }), from(host), NOW);
    const seen = peersIn(here.announce(announce({ port: 0 }), client, NOW));
    assert.deepEqual(seen, sees.map((host) => addressText(at(host, 9))).sort());
  });
}

test("Tracker.announce: a page of another site lists no local client, and receives only Internet addresses", () => {
  const here = tracker();
  for (const host of ["192.168.1.2", "127.0.0.1", "60.0.0.5"])
    here.announce(announce(), from(host, true), NOW);
  assert.deepEqual(peersIn(here.announce(announce({ port: 0 }), from("127.0.0.1"), NOW)), ["60.0.0.5:1"]);
});

test("Tracker.announce: the engine's own addresses come first, if visible, and are not returned to itself", () => {
  const places = [at("192.168.1.5", 8621), at("2001:470::5", 8621)];
  const here = tracker({ ownAddresses: () => places });
  for (let n = 0; n < 60; n++) here.announce(announce(), from(`60.0.1.${n}`), NOW);
  const near = here.announce(announce({ port: 0 }), from("192.168.1.2"), NOW) as TrackerServerResponse;
  assert.deepEqual(near.peers.slice(0, 2), places);
  assert.equal(near.peers.length, 50);
  const far = here.announce(announce({ port: 0 }), from("60.0.0.1"), NOW) as TrackerServerResponse;
  assert.deepEqual(far.peers[0], places[1]);
  assert.ok(!peersIn(far).includes("192.168.1.5:8621"));
  const self = here.announce(announce({ port: 8621 }), from("192.168.1.5"), NOW);
  assert.ok(!peersIn(self).some((text) => text.endsWith(":8621")));
});

test("Tracker.announce: returns as many peers as requested, of one IP version if requested", () => {
  const here = tracker();
  for (let n = 0; n < 300; n++) here.announce(announce(), from(`60.${n >> 8}.${n & 255}.1`), NOW);
  for (let n = 0; n < 5; n++) here.announce(announce(), from(`2001:470:${n}::1`), NOW);
  const count = (numWant: number | undefined, family?: 4 | 6) =>
    peersIn(here.announce(announce({ numWant, port: 0 }), from("60.9.9.9"), NOW, family)).length;
  assert.deepEqual([count(undefined), count(7), count(0), count(5000)], [50, 7, 0, 200]);
  assert.ok(count(200, 6) <= 5);
  const four = peersIn(here.announce(announce({ numWant: 200, port: 0 }), from("60.9.9.9"), NOW, 4));
  assert.ok(four.length > 0 && !four.some((text) => text.startsWith("[")));
});

test("Tracker.announce: counts one completion per peer", () => {
  const here = tracker();
  here.announce(announce(), from("60.0.0.1"), NOW);
  for (let n = 0; n < 3; n++)
    here.announce(announce({ event: "completed", isSeed: true }), from("60.0.0.1"), NOW);
  assert.deepEqual(here.counts(ONE, NOW), { seeders: 1, leechers: 0, completed: 1 });
});

test("Tracker.counts: a peer that has been silent for two and a half intervals expires", () => {
  const here = tracker();
  here.announce(announce(), from("60.0.0.1"), NOW);
  assert.equal(here.counts(ONE, instant(NOW + 1_499_999)).leechers, 1);
  assert.equal(here.counts(ONE, instant(NOW + 1_500_000)).leechers, 0);
});

test("Tracker.admits: a household has a burst of 200 requests, then five a second, independent of others", () => {
  const here = tracker();
  const admitted = (host: string, count: number, now: number) =>
    Array.from({ length: count }, () => here.admits(from(host), instant(now))).filter((no) => !no).length;
  assert.equal(admitted("60.0.0.1", 1000, 0), 200);
  assert.equal(admitted("60.0.0.2", 10, 0), 10);
  assert.equal(admitted("60.0.0.1", 1000, 10_000), 50);
  assert.equal(admitted("2001:470::1", 200, 0), 200);
  assert.equal(admitted("2001:470::ffff", 200, 0), 0);
});

test("Tracker.admits: remembers ten thousand households, and forgets the least recent one", () => {
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
