import assert from "node:assert/strict";
import { test } from "node:test";
import { LiveSegments } from "../../src/media/live-segments.ts";
import { SegmentGrid } from "../../src/media/segment-grid.ts";

const SECOND = 90_000;

/** The segments of a stream with these key frames: their times in seconds and their numbers. */
function segmentsOf(segments: LiveSegments, keys: readonly number[]): [number, number][] {
  const found: [number, number][] = [];
  for (const at of keys) {
    const pts = Math.round(at * SECOND);
    if (segments.addUnit({ dts: pts, pts }, true, 1_000_000)) found.push([at, segments.numberAt(0)]);
  }
  return found;
}

test("SegmentGrid: streams with the same key frames have the same segments, whenever they begin", () => {
  const grid = new SegmentGrid(2000);
  const keys = Array.from({ length: 20 }, (_, index) => 0.7 + index);
  const main = segmentsOf(new LiveSegments(2000, undefined, grid), keys);
  assert.deepEqual(main.slice(0, 3), [
    [0.7, 500],
    [2.7, 501],
    [4.7, 502],
  ]);
  const late = segmentsOf(new LiveSegments(2000, undefined, grid), keys.slice(7));
  assert.deepEqual(late.slice(1), main.slice(4));
});

test("SegmentGrid: numbers have no gaps if key frames are rare, and never decrease", () => {
  const grid = new SegmentGrid(2000);
  const rare = segmentsOf(new LiveSegments(2000, undefined, grid), [0, 5, 10, 15]);
  assert.deepEqual(
    rare.map(([, number]) => number),
    [500, 501, 502, 503],
  );
  // The source begins again with the same times.
  const again = segmentsOf(new LiveSegments(2000, 504, grid), [0, 5, 10]);
  assert.deepEqual(
    again.map(([, number]) => number),
    [504, 505, 506],
  );
  const follower = segmentsOf(new LiveSegments(2000, 504, grid), [0, 5, 10]);
  assert.deepEqual(follower, again);
});
