import assert from "node:assert/strict";
import { test } from "node:test";
import { isFastRun } from "../../parts/test-tiers.ts";
import { ATTACKS } from "./hostile-peer.ts";
import { type LiveScenario, LiveWorld, SMALL } from "./live-world.ts";

const SEEDS = isFastRun ? [1] : [1, 2, 3, 4, 5];
const ATTACKERS = 10;
const MAX_STALL_MS = 500;
/** The same if hostile peers hold all places of the source before the viewer comes. Without a place for peers that
 * starve, and without asking the source for headers and failed pulls, the worst of five seeds is 18 s. */
const MAX_STALL_WITHOUT_PLACES_MS = 800;
const MAX_START_MS = 3_000;

/** A viewer, its source, and ten hostile peers. */
function attacked(changes: Partial<LiveScenario>, maxStallMs = MAX_STALL_MS): void {
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
    assert.ok(report.worstStallMs <= maxStallMs, `seed ${seed}: ${report.worstStallMs} ms`);
    assert.ok(report.worstStartMs <= MAX_START_MS, `seed ${seed}: started after ${report.worstStartMs} ms`);
  }
}

for (const attack of ATTACKS) {
  test(`live: a viewer starts and plays among ten hostile peers (${attack}) that were there before it`, () => {
    attacked({ attack, attacksEarly: true });
  });
  test(`live: a viewer plays while ten hostile peers (${attack}) take places at the source`, () => {
    attacked({ attack, attacksSource: true });
  });
  test(`live: a viewer plays if ten hostile peers (${attack}) hold all places of the source before it comes`, () => {
    attacked({ attack, attacksEarly: true, attacksSource: true }, MAX_STALL_WITHOUT_PLACES_MS);
  });
}
