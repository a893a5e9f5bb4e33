import assert from "node:assert/strict";
import { test } from "node:test";
import { Lab, type LabNode, PIECE_MS } from "./lab.ts";

/** A source, and a viewer that has played for a while. */
function watched(): { lab: Lab; source: LabNode; viewer: LabNode } {
  const lab = new Lab(10);
  const source = lab.add({ role: "source" });
  lab.produce(source, 3_000);
  const viewer = lab.add();
  viewer.handle({ kind: "found", addresses: [source.address] });
  lab.produce(source, 5_000);
  return { lab, source, viewer };
}

/** How many of 80 pieces a viewer skips if the source's clock is set by `stepMs` and its timestamps never
 * decrease. */
function skippedAfter(stepMs: number): number {
  const { lab, source, viewer } = watched();
  assert.deepEqual(viewer.skipped, []);
  let timestampMs = lab.now - PIECE_MS;
  for (let i = 0; i < 80; i++) {
    timestampMs = Math.max(timestampMs, lab.now + stepMs);
    source.handle({ kind: "produced", ...lab.piece({ timestampMs }) });
    lab.pass(PIECE_MS);
  }
  assert.ok(viewer.played.at(-1)!.seq >= lab.seq - 2);
  return viewer.skipped.length;
}

test("LiveSwarm keeps playing if the source's clock jumps ahead, or back by less than the lag", () => {
  assert.equal(skippedAfter(5_000), 0);
  assert.equal(skippedAfter(3_600_000 / 8), 0);
  assert.equal(skippedAfter(-1_500), 0);
});

test("LiveSwarm resets its timeline within a second if the source's clock was set back", () => {
  assert.ok(skippedAfter(-5_000) <= 10);
  assert.ok(skippedAfter(-9_000) <= 30);
});

test("LiveSwarm bans no peer for a clock that is an hour ahead, and plays again when the clock is right", () => {
  const { lab, source, viewer } = watched();
  const before = viewer.played.length;
  assert.ok(before > 0);
  for (let i = 0; i < 480; i++) {
    source.handle({ kind: "produced", ...lab.piece({ timestampMs: lab.now + 3_600_000 }) });
    lab.pass(PIECE_MS);
  }
  assert.deepEqual(
    viewer.outputs.filter(({ kind }) => kind === "banned"),
    [],
  );
  assert.equal(viewer.played.length, before);
  lab.epoch++;
  lab.produce(source, 5_000);
  assert.ok(viewer.played.at(-1)!.seq >= lab.seq - 8, `${viewer.played.at(-1)!.seq} of ${lab.seq}`);
});
