import assert from "node:assert/strict";
import { test } from "node:test";
import { Histogram } from "./histogram.ts";
import type { LiveNode } from "./live-net.ts";
import { LiveWorld, SMALL } from "./live-world.ts";

const LEAVES = 11;
/** The upload of the hub, in multiples of the bitrate: just enough for its slots. */
const HUB_UPLOAD = 11.4;
/** These stripes do not reach the hub for two seconds. */
const TORN_STRIPES = 13;
const TORN_FROM_MS = 10_000;
const TORN_TO_MS = 12_000;
const FIRST_SEQ = 1_000;
/** If late chunks are forwarded at live priority, the 90th percentile is 340 ms; at repair priority, 250 ms. */
const MAX_DELAY_P90_MS = 280;

/** A hub feeds eleven viewers without upload, loses most stripes for two seconds, and pulls them. Returns
 * the delay of the other stripes at its children. */
function tear(): { readonly delayMs: Histogram; readonly droppedAsSlow: number } {
  const world = new LiveWorld({ ...SMALL, peers: 0, seed: 1, sourceUpload: 20, natPercent: 0 });
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

/** Intercepts the messages to a node; `hear` returns false to drop one. */
function listen(node: LiveNode, hear: (input: Message) => boolean): void {
  const handle = node.handle.bind(node);
  node.handle = (input) => {
    if (input.kind !== "message" || hear(input)) handle(input);
  };
}

test("live: late chunks do not delay the stripes that are on time, and no child is dropped as slow", () => {
  const { delayMs, droppedAsSlow } = tear();
  assert.equal(droppedAsSlow, 0);
  const p90 = delayMs.quantile(0.9);
  assert.ok(p90 < MAX_DELAY_P90_MS, `${p90} ms`);
});
