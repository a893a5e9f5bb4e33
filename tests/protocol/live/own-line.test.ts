import assert from "node:assert/strict";
import { test } from "node:test";
import { OwnLine } from "../../../src/protocol/live/own-line.ts";
import type { LivePeer } from "../../../src/protocol/live/peer.ts";

/** Bytes per second of a stripe. */
const STRIPE = 1_000;

/** A child that gets `childCount` stripes, and whose connection took this many bytes a second when its data waited last. */
function child(childCount: number, backlogAt: number, backlogRate: number): LivePeer {
  return { childOf: 2 ** childCount - 1, childCount, backlogAt, backlogRate } as LivePeer;
}

test("OwnLine: children that wait together limit the upload to what the line carried, and one stripe more each three seconds", () => {
  const line = new OwnLine();
  assert.equal(line.carriedBytesPerSecond(STRIPE, 0), Number.POSITIVE_INFINITY);
  assert.equal(line.overloaded([child(4, 10_000, 2_000), child(4, 9_500, 1_500)], STRIPE, 10_000), true);
  assert.equal(line.carriedBytesPerSecond(STRIPE, 12_999), 3_500);
  assert.equal(line.carriedBytesPerSecond(STRIPE, 13_000), 4_500);
  assert.equal(line.carriedBytesPerSecond(STRIPE, 16_000), 5_500);
});

test("OwnLine: a stripe that overloads the line again is tried later each time, at most after 48 s", () => {
  const line = new OwnLine();
  let now = 10_000;
  for (const stepMs of [3_000, 6_000, 12_000, 24_000, 48_000, 48_000]) {
    assert.equal(line.overloaded([child(4, now, 2_000), child(4, now, 1_500)], STRIPE, now), true);
    assert.equal(line.carriedBytesPerSecond(STRIPE, now + stepMs - 1), 3_500);
    now += stepMs;
    assert.equal(line.carriedBytesPerSecond(STRIPE, now), 4_500);
  }
});

test("OwnLine: one child that waits, and children whose data only paused, do not limit the line", () => {
  const line = new OwnLine();
  const now = 10_000;
  assert.equal(line.overloaded([child(8, now, 1_000), child(8, now - 1_001, 1_000)], STRIPE, now), false);
  assert.equal(line.overloaded([child(4, now, 3_800), child(4, now, 3_900)], STRIPE, now), false);
  assert.equal(line.carriedBytesPerSecond(STRIPE, now), Number.POSITIVE_INFINITY);
});
