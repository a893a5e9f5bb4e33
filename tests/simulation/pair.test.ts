import assert from "node:assert/strict";
import { test } from "node:test";
import { makeContent } from "./simulated-content.ts";
import type { HostLine } from "./simulated-net.ts";
import type { SwarmNode, SwarmNodeOptions } from "./swarm-node.ts";
import { KB, MB, World } from "./world.ts";

/** Fast and near, so that only the messages matter. */
const CABLE: HostLine = { up: 20 * MB, down: 20 * MB, latencyMs: 1 };
const ALL = (world: World) => ({ start: 0, end: world.content.layout.length });

/** Two engines, the second of which knows the first; both fetch everything they lack. */
function pair(
  world: World,
  first: Partial<SwarmNodeOptions>,
  second: Partial<SwarmNodeOptions> = {},
  line = CABLE,
): [SwarmNode, SwarmNode] {
  const none = { trackers: new Map() };
  const nodes = [
    world.leecher(line, { ...none, ...first }),
    world.leecher(line, { ...none, ...second }),
  ] as const;
  nodes[1].found([nodes[0].host.address], "magnet");
  for (const node of nodes) if (node.held.size < world.content.layout.pieceCount) node.download(ALL(world));
  return [...nodes];
}

const small = (seed: number) => new World(seed, { length: 4 * MB + 7_000, pieceLength: 64 * KB });
const isWhole = (world: World, node: SwarmNode) => node.held.size === world.content.layout.pieceCount;

test("two Swarms: the whole content is transferred without wasted bytes", () => {
  const world = small(1);
  const [, leecher] = pair(world, { held: "all" });
  world.run(20_000, () => isWhole(world, leecher));
  assert.ok(isWhole(world, leecher));
  const { wasted, downloaded } = leecher.swarm.figures(world.events.now);
  assert.deepEqual([wasted, downloaded], [0, world.content.layout.length]);
  assert.equal(leecher.wrongPieces, 0);
});

test("two Swarms: starting from an infohash alone", () => {
  const world = small(2);
  const [, leecher] = pair(world, { held: "all" }, { isMagnet: true });
  world.run(20_000, () => isWhole(world, leecher));
  assert.ok(leecher.hasMetadata && isWhole(world, leecher));
});

test("two Swarms: each has one half and gets the other", () => {
  const world = small(3);
  const pieces = Array.from({ length: world.content.layout.pieceCount }, (_, i) => i);
  const nodes = pair(world, { held: pieces.filter((i) => i < 30) }, { held: pieces.filter((i) => i >= 30) });
  world.run(30_000, () => nodes.every((node) => isWhole(world, node)));
  assert.ok(nodes.every((node) => isWhole(world, node)));
  for (const node of nodes) assert.equal(node.swarm.figures(world.events.now).wasted, 0);
});

test("two Swarms: two peers that have everything disconnect, and do not dial again (BEP 21)", () => {
  const world = small(4);
  const [seeder, leecher] = pair(world, { held: "all" });
  world.run(90_000, () => false);
  assert.ok(isWhole(world, leecher));
  for (const node of [seeder, leecher]) {
    assert.equal(node.swarm.figures(world.events.now).connectedPeers, 0);
  }
  // Either one may dial first, or both at once, but only once.
  for (const { closes } of [seeder, leecher]) assert.ok(closes.length <= 1, JSON.stringify(closes));
});

test("two Swarms: both dial each other, and one connection remains that transfers everything", () => {
  const world = small(5);
  const [seeder, leecher] = pair(world, { held: "all" });
  seeder.found([leecher.host.address], "tracker");
  world.run(20_000, () => isWhole(world, leecher));
  assert.ok(isWhole(world, leecher));
  assert.equal(leecher.swarm.figures(world.events.now).connectedPeers, 1);
});

test("two Swarms: a broken connection is replaced, and the download continues", () => {
  const world = new World(6, { length: 16 * MB, pieceLength: 64 * KB });
  const [, leecher] = pair(world, { held: "all" }, {}, { ...CABLE, up: 1 * MB });
  world.events.at(3_000, () => {
    for (const socket of [...leecher.host.sockets]) socket.close();
  });
  world.run(60_000, () => isWhole(world, leecher));
  assert.ok(isWhole(world, leecher));
  assert.ok(leecher.swarm.figures(world.events.now).wasted <= 64 * KB);
});

test("Swarm introduces two peers to each other (BEP 11)", () => {
  const world = small(7);
  const [middle, first] = pair(world, { held: "all" });
  const second = world.leecher(CABLE, { trackers: new Map() });
  second.found([middle.host.address], "magnet");
  second.download(ALL(world));
  const isTold = () => second.swarm.figures(world.events.now).knownCandidates >= 2;
  world.run(70_000, () => isTold() && isWhole(world, first) && isWhole(world, second));
  assert.ok(isTold(), "the second has heard of the first");
  assert.ok(isWhole(world, first) && isWhole(world, second));
});

for (const limit of [100 * KB, 1 * MB]) {
  test(`Swarm keeps to an upload limit of ${limit / KB} KiB/s within 5 %`, () => {
    const world = new World(8, makeContent(32 * MB, 64 * KB, 8));
    const [seeder, leecher] = pair(world, { held: "all", uploadLimit: limit });
    const third = world.leecher(CABLE, { trackers: new Map() });
    third.found([seeder.host.address], "magnet");
    third.download(ALL(world));
    world.run(5_000, () => false);
    const before = seeder.swarm.figures(world.events.now).uploaded;
    world.run(25_000, () => false);
    const rate = (seeder.swarm.figures(world.events.now).uploaded - before) / 20;
    assert.ok(Math.abs(rate - limit) <= 0.05 * limit, `${Math.round(rate)} bytes a second`);
    assert.ok(leecher.held.size + third.held.size > 0);
  });
}

for (const [pieceMib, memoryMib] of [
  [16, 32],
  [32, 32],
  [32, 64],
] as const) {
  test(`two Swarms: pieces of ${pieceMib} MiB with buffers of ${memoryMib} MiB in all`, () => {
    const world = new World(9, { length: 80 * MB + 1, pieceLength: pieceMib * MB });
    const [, leecher] = pair(world, { held: "all" }, { memoryBytes: memoryMib * MB });
    world.run(60_000, () => isWhole(world, leecher));
    assert.ok(isWhole(world, leecher));
    assert.equal(leecher.swarm.figures(world.events.now).wasted, 0);
  });
}
