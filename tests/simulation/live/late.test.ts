import assert from "node:assert/strict";
import { test } from "node:test";
import { LIVE_RULES } from "../../../src/swarm/live/limits.ts";
import { Histogram } from "./histogram.ts";
import type { LiveNode } from "./live-net.ts";
import { LiveWorld, SMALL } from "./live-world.ts";

const LEAVES = 11;
/** What the hub uploads, in multiples of the bitrate: its slots are just taken. */
const HUB_UPLOAD = 11.4;
/** These stripes do not reach the hub for two seconds. */
const TORN_STRIPES = 13;
const TORN_FROM_MS = 10_000;
const TORN_TO_MS = 12_000;
const FIRST_SEQ = 1_000;

/** A hub feeds eleven who cannot upload, loses most stripes for two seconds, and pulls them: what its children see of the others. */
function tear(yieldsLate: boolean): { readonly delayMs: Histogram; readonly droppedAsSlow: number } {
  const rules = { ...LIVE_RULES, yieldsLate };
  const world = new LiveWorld({ ...SMALL, peers: 0, seed: 1, sourceUpload: 20, natPercent: 0, rules });
  const hub = world.join(false, { isReachable: true, isBlackHole: false }, HUB_UPLOAD);
  world.events.runTo(3e6);
  const leaves = Array.from({ length: LEAVES }, () => world.join(false, { isBlackHole: false }, 0));
  world.events.runTo(1e3 * TORN_FROM_MS);
  listen(hub, ({ message }) => {
    const isTorn = message.kind === "chunk" && !message.isLate && message.stripe < TORN_STRIPES;
    return !(isTorn && world.events.nowMs < TORN_TO_MS);
  });
  const delayMs = new Histogram();
  let droppedAsSlow = 0;
  for (const leaf of leaves) {
    listen(leaf, ({ message }) => {
      if (message.kind === "chunk" && message.stripe >= TORN_STRIPES)
        delayMs.add(world.events.nowMs - (message.seq - FIRST_SEQ) * SMALL.pieceMs);
      if (message.kind === "unsubscribe" && message.reason === "slow") droppedAsSlow++;
      return true;
    });
  }
  world.events.runTo(16e6);
  return { delayMs, droppedAsSlow };
}

type Message = Parameters<LiveNode["handle"]>[0] & { readonly kind: "message" };

/** Hears what a node is told, and decides whether it is. */
function listen(node: LiveNode, hear: (input: Message) => boolean): void {
  const handle = node.handle.bind(node);
  node.handle = (input) => {
    if (input.kind !== "message" || hear(input)) handle(input);
  };
}

test("live: late chunks that go on as live ones hold up the stripes that are in time, and cost children theirs", () => {
  const yielding = tear(true);
  const pushing = tear(false);
  assert.equal(yielding.droppedAsSlow, 0);
  assert.ok(pushing.droppedAsSlow > 0);
  const [quick, slow] = [yielding, pushing].map(({ delayMs }) => delayMs.quantile(0.9));
  assert.ok(quick! < 0.8 * slow!, `${quick} and ${slow} ms`);
});
