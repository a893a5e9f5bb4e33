import assert from "node:assert/strict";
import { test } from "node:test";
import { PartCutter } from "../../src/live/window/live-window-parts.ts";

/** The part durations of a segment whose pieces have these spans, in ms. */
function partsOf(pieceMs: number, spans: readonly number[]): number[] {
  const cutter = new PartCutter(pieceMs);
  for (const [index, span] of spans.entries()) cutter.add(1000 * (index + 1), span, index === 0);
  cutter.close();
  assert.equal(cutter.parts.at(-1)!.end, 1000 * spans.length);
  assert.deepEqual(
    cutter.parts.map(({ isIndependent }) => isIndependent),
    cutter.parts.map((_, index) => index === 0),
  );
  return cutter.parts.map(({ durationMs }) => durationMs);
}

const TABLE: readonly [pieceMs: number, spans: readonly number[], parts: readonly number[]][] = [
  [125, [125, 125, 125, 125], [250, 250]],
  [125, [60, 127, 125, 125, 126, 40], [275, 251, 40]],
  // A short late piece is not a part of its own, even if the part exceeds the target.
  [125, [125, 125, 170, 125, 125, 125], [250, 275, 250]],
  [125, [240, 125, 125], [240, 250]],
  // Small pieces of a peak are joined.
  [125, [125, 125, 50, 50, 50, 50, 50, 125], [250, 250, 125]],
  [50, [50, 50, 50, 50, 50, 50], [250, 50]],
  [500, [500, 500, 100], [500, 500, 100]],
  [500, [500, 300, 500, 100], [500, 550, 100]],
];
for (const [pieceMs, spans, parts] of TABLE) {
  test(`PartCutter: pieces of ${pieceMs} ms that take ${spans} make parts of ${parts}`, () => {
    assert.deepEqual(partsOf(pieceMs, spans), parts);
  });
}
