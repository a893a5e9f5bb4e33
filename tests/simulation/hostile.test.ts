import assert from "node:assert/strict";
import { test } from "node:test";
import { isFastRun } from "../parts/test-tiers.ts";
import { HOSTILE_KINDS } from "./hostile-peer.ts";
import { hostileKind, runScenario } from "./scenarios.ts";
import type { Report } from "./world.ts";

function assertSound(report: Report): void {
  assert.ok(report.isComplete, "playback completes");
  assert.equal(report.wrongPieces, 0, "wrong bytes");
  assert.equal(report.innocentBans, 0, "innocents banned");
}

function check(report: Report, criteria: () => void): void {
  try {
    assertSound(report);
    criteria();
  } catch (thrown) {
    console.log(report);
    throw thrown;
  }
}

for (const { name, liars, wastePercent } of [
  { name: "poison1", liars: 1, wastePercent: 5 },
  { name: "poison5", liars: 5, wastePercent: 15 },
  { name: "poison10", liars: 10, wastePercent: 30 },
  { name: "poison10-all", liars: 10, wastePercent: 30 },
  { name: "poison10-rare", liars: 10, wastePercent: 30 },
]) {
  for (const seed of isFastRun ? [1] : [1, 2]) {
    test(`Swarm, simulated, ${name} (seed ${seed}): all liars and only liars banned, waste at most ${wastePercent} %`, () => {
      const report = runScenario(name, seed);
      check(report, () => {
        assert.ok(report.bans >= (name === "poison10-rare" ? liars - 2 : liars), `${report.bans} bans`);
        assert.ok(report.wastePercent <= wastePercent, `${report.wastePercent} % wasted`);
        assert.ok(report.stalledMs <= 5_000, `${report.stalledMs} ms stalled`);
      });
    });
  }
}

let cleanReport: Report | undefined;
function cleanRun(): Report {
  cleanReport ??= hostileKind(undefined, 1);
  return cleanReport;
}

// `unasked`: 64 blocks of each of two peers are received before they are disconnected, a sixth of these 12
// MiB.
for (const kind of HOSTILE_KINDS) {
  test(`Swarm, simulated, two peers of kind ${kind}: start-up at most 2 × clean, no stall`, () => {
    const clean = cleanRun();
    const report = hostileKind(kind, 1);
    check(report, () => {
      assert.ok(report.startMs! <= 2 * clean.startMs! + 100, `${report.startMs} against ${clean.startMs} ms`);
      assert.equal(report.stalls, 0);
      assert.ok(report.wastePercent <= (kind === "unasked" ? 17 : 2), `${report.wastePercent} % wasted`);
    });
  });
}

test("Swarm, simulated, one of each hostile kind: plays without a stall", () => {
  const report = runScenario("hostile", 1);
  check(report, () => {
    assert.ok(report.startMs! <= 3_000);
    assert.ok(report.stalls <= 1);
  });
});

test("Swarm, simulated, eclipse: 19 hostile peers of 20, and playback starts within 30 s", () => {
  for (const seed of [1, 2]) {
    const report = runScenario("eclipse", seed);
    check(report, () => assert.ok(report.startMs! <= 30_000));
  }
});

test("Swarm, simulated: the same seed gives the same run", () => {
  assert.deepEqual(runScenario("poison5", 7), runScenario("poison5", 7));
});
