import assert from "node:assert/strict";
import { test } from "node:test";
import { instant } from "../../../src/base/time.ts";
import { Choker, type ChokerPeer } from "../../../src/protocol/swarm/choker.ts";
import { seededRandom } from "../../seeded-random.ts";

const at = (ms: number) => instant(ms);

function peer(id: number, change: Partial<ChokerPeer> = {}): ChokerPeer {
  return {
    id,
    isInterested: true,
    isUploadOnly: false,
    isSnubbing: false,
    bytesPerSecondDown: 0,
    bytesPerSecondUp: 0,
    connectedAt: at(0),
    ...change,
  };
}

function crowd(count: number, change: (id: number) => Partial<ChokerPeer> = () => ({})): ChokerPeer[] {
  return Array.from({ length: count }, (_, id) => peer(id, change(id)));
}

test("Choker.round: the first interested peers are unchoked at once, also between rounds", () => {
  const choker = new Choker(0, seededRandom(1));
  assert.equal(choker.round([], false, at(0)).size, 0);
  assert.ok(choker.round([peer(1)], false, at(10)).has(1));
  assert.ok(choker.round([peer(1), peer(2)], false, at(20)).has(2));
});

test("Choker.round: never exceeds the slots, never unchokes uninterested or upload-only peers", () => {
  const choker = new Choker(0, seededRandom(1));
  const peers = crowd(40, (id) => ({ isInterested: id % 3 !== 0, isUploadOnly: id % 3 === 1 }));
  for (let now = 0; now < 300_000; now += 1_000) {
    const unchoked = choker.round(peers, now % 20_000 === 0, at(now));
    assert.ok(unchoked.size <= choker.slots);
    for (const id of unchoked) assert.equal(id % 3, 2);
  }
});

test("Choker.round: while leeching, the fastest uploaders keep their slots", () => {
  const choker = new Choker(0, seededRandom(1));
  const peers = crowd(20, (id) => ({ bytesPerSecondDown: id * 1000 }));
  for (let now = 0; now <= 120_000; now += 10_000) choker.round(peers, false, at(now));
  const unchoked = choker.round(peers, false, at(130_000));
  for (const id of [19, 18, 17, 16]) assert.ok(unchoked.has(id), `peer ${id}`);
});

test("Choker.round: a snubbing peer gets optimistic slots only", () => {
  const choker = new Choker(64 * 1024, seededRandom(1));
  const peers = crowd(10, (id) => ({ bytesPerSecondDown: 10 + id }));
  const snubber = peer(10, { bytesPerSecondDown: 1e6, isSnubbing: true });
  const rounds = new Array(11).fill(0);
  for (let now = 0; now < 600_000; now += 10_000) {
    for (const id of choker.round([...peers, snubber], false, at(now))) rounds[id]++;
  }
  assert.ok(rounds[9] >= 55 && rounds[8] >= 50 && rounds[10] <= 15, `${rounds}`);
});

test("Choker.round: the optimistic slots rotate until every peer has had one", () => {
  const choker = new Choker(0, seededRandom(2));
  const peers = crowd(30, (id) => ({ bytesPerSecondDown: id < 8 ? 1e6 : 0 }));
  const seen = new Set<number>();
  for (let now = 0; now < 3_600_000; now += 10_000) {
    for (const id of choker.round(peers, false, at(now))) seen.add(id);
  }
  assert.equal(seen.size, 30);
});

test("Choker.round: the optimistic slot favours new peers about three to one", () => {
  let newcomers = 0;
  for (let seed = 0; seed < 400; seed++) {
    const choker = new Choker(1, seededRandom(seed));
    const now = 1_000_000;
    const peers = crowd(20, (id) => ({ bytesPerSecondDown: 1, connectedAt: at(id < 10 ? now - 1 : 0) }));
    const [optimistic] = choker.round(peers, false, at(now));
    if (optimistic! < 10) newcomers++;
  }
  assert.ok(newcomers > 260 && newcomers < 340, `${newcomers} of 400`);
});

test("Choker.round: while seeding, every peer is served in turn", () => {
  const choker = new Choker(0, seededRandom(1));
  const peers = crowd(30, (id) => ({ bytesPerSecondUp: id < 8 ? 1e7 : 1e3 }));
  const served = new Map<number, number>();
  for (let now = 0; now < 1_200_000; now += 10_000) {
    for (const id of choker.round(peers, true, at(now))) served.set(id, (served.get(id) ?? 0) + 1);
  }
  assert.equal(served.size, 30);
  const rounds = [...served.values()].sort((a, b) => a - b);
  assert.ok(rounds[0]! * 4 > rounds.at(-1)!, `least ${rounds[0]}, most ${rounds.at(-1)} rounds`);
});

test("Choker.round: between rounds no interested peer is choked", () => {
  const choker = new Choker(0, seededRandom(1));
  const peers = crowd(20);
  const before = choker.round(peers, false, at(0));
  const slower = peers.map((each) => ({ ...each, bytesPerSecondDown: 1000 - each.id }));
  const between = choker.round(slower, false, at(5_000));
  assert.deepEqual([...between].sort(), [...before].sort());
});

test("Choker.round: a peer that leaves frees its slot at once", () => {
  const choker = new Choker(0, seededRandom(1));
  const peers = crowd(20);
  const [first] = choker.round(peers, false, at(0));
  const rest = peers.filter(({ id }) => id !== first);
  const unchoked = choker.round(rest, false, at(100));
  assert.ok(!unchoked.has(first!));
  assert.equal(unchoked.size, choker.slots);
});

for (const [limit, slots] of [
  [0, 8],
  [10_000, 3],
  [160 * 1024, 5],
  [100e6, 20],
]) {
  test(`Choker.slots: ${slots} with an upload limit of ${limit}`, () => {
    assert.equal(new Choker(limit!, seededRandom(1)).slots, slots);
  });
}
