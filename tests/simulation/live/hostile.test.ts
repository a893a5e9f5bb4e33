import assert from "node:assert/strict";
import { test } from "node:test";
import { isFastRun } from "../../parts/test-tiers.ts";
import { ATTACKS } from "./hostile-peer.ts";
import { type LiveScenario, LiveWorld, SMALL } from "./live-world.ts";

const SEEDS = isFastRun ? [1] : [1, 2, 3, 4, 5];
const ATTACKERS = 10;
const MAX_STALL_MS = 500;

/** A viewer, its source, and ten hostile peers. */
function attacked(changes: Partial<LiveScenario>): void {
  for (const seed of SEEDS) {
    const scenario = {
      peers: 1,
      natPercent: 0,
      seconds: 8,
      uploads: [[1, 2]] as const,
      attackers: ATTACKERS,
    };
    const report = new LiveWorld({ ...SMALL, ...scenario, ...changes, seed }).run();
    assert.ok(report.expectedChunks > 900, `seed ${seed}: ${report.expectedChunks} chunks`);
    assert.equal(report.missedChunks, 0, `seed ${seed}`);
    assert.equal(report.innocentBans, 0, `seed ${seed}`);
    assert.equal(report.wrongPieces, 0, `seed ${seed}`);
    assert.ok(report.worstStallMs <= MAX_STALL_MS, `seed ${seed}: ${report.worstStallMs} ms`);
  }
}

for (const attack of ATTACKS) {
  test(`live: a viewer starts and plays among ten hostile peers (${attack}) that were there before it`, () => {
    attacked({ attack, attacksEarly: true });
  });
  test(`live: a viewer plays while ten hostile peers (${attack}) take places at the source`, () => {
    attacked({ attack, attacksSource: true });
  });
}
