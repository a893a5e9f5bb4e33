import assert from "node:assert/strict";
import { test } from "node:test";
import {
  decodeTicks,
  deltaTicks,
  firstDecodeTicks,
  reorderTicks,
  TICKS_MODULUS,
  wrapTicks,
} from "../../src/media/timestamps.ts";

test("deltaTicks returns the shorter distance across the wrap", () => {
  assert.equal(deltaTicks(100, TICKS_MODULUS - 50), 150);
  assert.equal(deltaTicks(TICKS_MODULUS - 50, 100), -150);
  assert.equal(deltaTicks(7, 7), 0);
});

test("wrapTicks reduces any time to 33 bits", () => {
  for (const ticks of [-5, 0, 3 * TICKS_MODULUS + 17, TICKS_MODULUS - 1]) {
    assert.ok(Number.isInteger((wrapTicks(ticks) - ticks) / TICKS_MODULUS));
    assert.ok(wrapTicks(ticks) >= 0 && wrapTicks(ticks) < TICKS_MODULUS);
  }
});

test("decodeTicks is strictly increasing and never after the PTS, with the reorder measured on the frames", () => {
  const pts = [0, 3, 1, 2, 6, 4, 5, 7].map((frame) => frame * 3600);
  const dts = decodeTicks(pts, reorderTicks(pts));
  assert.deepEqual(
    [...dts],
    [-1, 0, 1, 2, 3, 4, 5, 6].map((frame) => frame * 3600),
  );
});

test("decodeTicks is never after the PTS even if the reorder is too small", () => {
  const pts = [0, 8, 4, 2, 1, 3, 6, 5, 7].map((frame) => frame * 3600);
  const dts = decodeTicks(pts, 0);
  for (const [i, at] of dts.entries()) assert.ok(at <= pts[i]! && (i === 0 || at > dts[i - 1]!));
});

test("decodeTicks is continuous across a segment boundary", () => {
  const first = decodeTicks([0, 3, 1, 2], 1);
  const second = decodeTicks([4, 7, 5, 6], 1);
  assert.ok(second[0]! > first.at(-1)!);
});

test("firstDecodeTicks returns the first of decodeTicks, also if the reordering is deeper than stated", () => {
  for (const [pts, reorder] of [
    [[0, 9, 3, 6, 18, 12], 6],
    [[9, 0, 3, 6, 18, 12], 0],
    [[5], 2],
  ] as const) {
    const sorted = pts.toSorted((a, b) => a - b);
    assert.equal(firstDecodeTicks(pts, reorder, sorted), decodeTicks(pts, reorder)[0]);
  }
});
