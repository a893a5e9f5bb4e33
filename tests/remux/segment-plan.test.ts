import assert from "node:assert/strict";
import { test } from "node:test";
import { evenCuts, mergeTail, planCuts, segmentTimes } from "../../src/remux/segment-plan.ts";

test("planCuts: cuts at the first key frame a target duration after the last cut, earlier for the first two, with tolerance for rounding", () => {
  assert.deepEqual(
    planCuts([0, 1, 2, 4, 5.9998, 8, 12.5, 18.4998, 30], 6),
    [0, 2, 5.9998, 12.5, 18.4998, 30],
  );
  assert.deepEqual(planCuts([0, 5, 10, 15, 20], 6), [0, 5, 10, 20]);
  assert.deepEqual(planCuts([0, 1, 2, 3, 4], 1), [0, 1, 2, 3, 4]);
  assert.deepEqual(planCuts([], 6), []);
});

test("mergeTail: merges a short last segment into the previous one, but keeps a single segment", () => {
  assert.deepEqual(mergeTail([0, 6, 12], 13, 6), [0, 6]);
  assert.deepEqual(mergeTail([0, 6, 12], 14, 6), [0, 6, 12]);
  assert.deepEqual(mergeTail([0], 0, 6), [0]);
});

test("evenCuts and segmentTimes: have no gaps, are relative to the first cut, and are never empty", () => {
  assert.deepEqual(evenCuts(0, 20, 6), [0, 2, 6, 12]);
  assert.deepEqual(evenCuts(0, 1, 6), [0]);
  assert.deepEqual(evenCuts(0, 40, 6, 10), [0, 10, 20, 30]);
  assert.deepEqual(evenCuts(0, 20, 6, 2.5), [0, 2.5, 7.5, 15]);
  assert.deepEqual(segmentTimes([1.5, 7.5], 9), [
    { startSeconds: 0, durationSeconds: 6 },
    { startSeconds: 6, durationSeconds: 1.5 },
  ]);
  assert.ok(segmentTimes([0], 0)[0]!.durationSeconds > 0);
});
