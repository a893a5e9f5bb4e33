import assert from "node:assert/strict";
import { test } from "node:test";
import { instant } from "../../../src/base/time.ts";
import { SpareUpload } from "../../../src/protocol/live/spare-upload.ts";
import { LiveState } from "../../../src/protocol/live/state.ts";
import { PieceWindow } from "../../../src/protocol/live/window.ts";
import { header, STRIPES, setupOf } from "./scripted.ts";

const NOW = instant(0);

test("PieceWindow keeps the newest pieces up to its capacity", () => {
  const window = new PieceWindow(STRIPES, 8);
  for (let seq = 10; seq < 30; seq++) assert.ok(window.addHeader(header(seq), NOW));
  assert.equal(window.head, 29);
  assert.equal(window.oldest, 22);
  assert.equal(window.piece(21), undefined);
  assert.equal(window.addHeader(header(21), NOW), false);
  assert.equal(window.piece(29)?.seq, 29);
});

test("PieceWindow counts the empty chunks of a short piece as held", () => {
  const window = new PieceWindow(STRIPES, 8);
  window.addHeader(header(5, { pieceBytes: 200 }), NOW);
  assert.equal(window.piece(5)?.mask, 0b1100);
  window.addChunk(window.piece(5)!, 0, new Uint8Array(188), NOW);
  assert.equal(window.isWhole(5), false);
  window.addChunk(window.piece(5)!, 1, new Uint8Array(12), instant(9));
  assert.equal(window.isWhole(5), true);
  assert.equal(window.piece(5)?.completedAt, 9);
});

test("Timeline measures lateness relative to the fastest arrival, whatever the source's clock says", () => {
  const timeline = new LiveState(setupOf({}), instant(0)).timeline;
  timeline.arrived(1e12, instant(500));
  timeline.arrived(1e12 + 125, instant(700));
  assert.equal(timeline.latenessMs(1e12, instant(500)), 0);
  assert.equal(timeline.latenessMs(1e12 + 125, instant(700)), 75);
});

test("Timeline follows a clock that drifts within two minutes", () => {
  const timeline = new LiveState(setupOf({}), instant(0)).timeline;
  for (let ms = 0; ms <= 180_000; ms += 1_000) timeline.arrived(ms * 0.99, instant(ms));
  assert.ok(timeline.latenessMs(180_000 * 0.99, instant(180_000)) < 1_300);
});

test("SpareUpload returns how long a chunk waits, and whether more than one second of upload is owed", () => {
  const spare = new SpareUpload(() => 1_000);
  assert.equal(spare.waitMs(500, 1_000), 0);
  spare.spend(1_500, 1_000);
  assert.equal(spare.waitMs(500, 1_000), 1_000);
  assert.equal(spare.isOverdrawn(1_000), false);
  spare.spend(600, 1_000);
  assert.equal(spare.isOverdrawn(1_000), true);
  assert.equal(spare.isOverdrawn(1_200), false);
});
