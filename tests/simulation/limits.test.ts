import assert from "node:assert/strict";
import { test } from "node:test";
import { RateLimit, URGENCY } from "../../src/base/rate-limit.ts";
import type { SwarmLimits } from "../../src/protocol/swarm/contract.ts";
import { makeContent } from "./simulated-content.ts";
import type { HostLine } from "./simulated-net.ts";
import type { SwarmNode } from "./swarm-node.ts";
import { KB, MB, World } from "./world.ts";

/** Fast, so that only the limits matter. */
const CABLE: HostLine = { up: 20 * MB, down: 20 * MB, latencyMs: 10 };
const SEED = 11;

/** Several swarms of one engine that share its limits, each with one peer. */
function engine(pairs: number, upload: number, download: number, isExempt = (_: string) => false) {
  console.log(`seed ${SEED}`);
  const world = new World(SEED, makeContent(64 * MB, 64 * KB, SEED));
  const [up, down] = [new RateLimit(upload), new RateLimit(download)];
  const limits = (): SwarmLimits => ({
    upload: up.budget(() => URGENCY.files),
    download: down.budget(() => URGENCY.files),
    isExempt,
  });
  const none = { trackers: new Map() };
  const all = { start: 0, end: world.content.layout.length };
  const nodes = Array.from({ length: pairs }, () => {
    const ours = world.leecher(CABLE, {
      ...none,
      held: upload > 0 ? "all" : "none",
      limits: limits(),
    });
    const theirs = world.leecher(CABLE, { ...none, held: upload > 0 ? "none" : "all" });
    ours.found([theirs.host.address], "magnet");
    (upload > 0 ? theirs : ours).download(all);
    return ours;
  });
  return { world, nodes };
}

/** The bytes that each node moves in a second. */
function rates(
  world: World,
  nodes: readonly SwarmNode[],
  direction: "uploaded" | "downloaded",
  seconds: number,
): number[] {
  const moved = () => nodes.map(({ swarm }) => swarm.figures(world.events.now)[direction]);
  const before = moved();
  world.run(world.events.now + 1000 * seconds, () => false);
  return moved().map((bytes, i) => (bytes - before[i]!) / seconds);
}

const sum = (values: readonly number[]) => values.reduce((all, value) => all + value, 0);

for (const direction of ["uploaded", "downloaded"] as const) {
  for (const [pairs, limit] of [
    [1, 200 * KB],
    [3, 200 * KB],
    [3, 2 * MB],
  ] as const) {
    test(`Swarm: ${pairs} swarms of one engine keep to ${limit / KB} KiB/s ${direction} together, within 5 %, and share it`, () => {
      const isUpload = direction === "uploaded";
      const { world, nodes } = engine(pairs, isUpload ? limit : 0, isUpload ? 0 : limit);
      rates(world, nodes, direction, 5);
      const got = rates(world, nodes, direction, 20);
      assert.ok(Math.abs(sum(got) - limit) <= 0.05 * limit, `${got.map(Math.round)} bytes a second`);
      for (const one of got) assert.ok(one > (0.7 * limit) / pairs, `${got.map(Math.round)} bytes a second`);
      const held = nodes.map(({ swarm }) => swarm.figures(world.events.now).limitedToBytesPerSecond);
      assert.deepEqual(held, Array(pairs).fill(isUpload ? 0 : limit), "the limit is why it is no faster");
    });
  }
}

test("Swarm: peers that are exempt from the limits use the full rate", () => {
  for (const direction of ["uploaded", "downloaded"] as const) {
    const isUpload = direction === "uploaded";
    const { world, nodes } = engine(2, isUpload ? 100 * KB : 0, isUpload ? 0 : 100 * KB, () => true);
    const got = rates(world, nodes, direction, 4);
    assert.ok(sum(got) > 4 * MB, `${got.map(Math.round)} bytes a second`);
  }
});

test("Swarm: the peers of a swarm share a small upload limit", () => {
  console.log(`seed ${SEED}`);
  const limit = 150 * KB;
  const world = new World(SEED, makeContent(64 * MB, 64 * KB, SEED));
  const none = { trackers: new Map() };
  const giver = world.leecher(CABLE, { ...none, held: "all", uploadLimit: limit });
  // The peers do not serve each other; otherwise one of them could take everything and forward it.
  const takers = [1, 2, 3].map(() => world.leecher(CABLE, { ...none, uploadLimit: 1 }));
  for (const taker of takers) {
    taker.found([giver.host.address], "magnet");
    taker.download({ start: 0, end: world.content.layout.length });
  }
  rates(world, [giver], "uploaded", 5);
  const got = rates(world, takers, "downloaded", 30);
  for (const one of got) assert.ok(one > (0.6 * limit) / 3, `${got.map(Math.round)} bytes a second`);
});
