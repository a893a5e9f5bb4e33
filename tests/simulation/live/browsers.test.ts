import assert from "node:assert/strict";
import { test } from "node:test";
import { testsThatNeed } from "../../parts/needs.ts";
import { isFastRun } from "../../parts/test-tiers.ts";
import { type LiveReport, type LiveScenario, LiveWorld, SMALL } from "./live-world.ts";

const { test: longTest } = await testsThatNeed("time");

const SEEDS = isFastRun ? [2, 3, 4] : [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
/** 2 Mbit/s, and the lag of a page. */
const PAGES = { browsers: 1, peers: 20, bytesPerSecond: 250_000, lagMs: 2_500, seconds: 15 };
const LONGEST_DELAY_MS = 3_000;

function run(scenario: Partial<LiveScenario>): LiveReport {
  return new LiveWorld({ ...SMALL, ...PAGES, ...scenario }).run();
}

function onTime({ missedChunks, expectedChunks }: LiveReport): number {
  return 1 - missedChunks / expectedChunks;
}

test("live: twenty pages on home lines, a third of which cannot be called, cost the engine three copies", () => {
  const reports = SEEDS.map((seed) => run({ seed }));
  for (const [i, report] of reports.entries()) {
    assert.ok(onTime(report) >= 0.999, `seed ${SEEDS[i]}: ${onTime(report)} on time`);
    assert.ok(report.delayMs.quantile(0.999) <= LONGEST_DELAY_MS, `seed ${SEEDS[i]}: delay`);
    assert.equal(report.innocentBans, 0);
  }
  const uploads = reports.map(({ sourceUpload }) => sourceUpload);
  const mean = uploads.reduce((sum, upload) => sum + upload, 0) / uploads.length;
  assert.ok(mean <= 3, `${mean} copies`);
  // Where the lines of the pages carry less than the stream needs, the engine sends the rest.
  const worst = Math.max(...uploads);
  assert.ok(worst <= 3.3, `${worst} copies`);
});

longTest(
  "live: two hundred pages on home lines cost the engine three copies, soon after they have joined together",
  () => {
    const pages = { peers: 200, stripes: 8, pieceMs: 250, bytesPerSecond: 125_000 };
    const report = run(pages);
    assert.ok(onTime(report) >= 0.999, `${onTime(report)} on time`);
    // Four, if the engine judges old reports, and serves pages that have left it.
    assert.ok(report.sourceCopies <= 3, `${report.sourceCopies} copies`);
    assert.ok(report.sourceUpload <= 3.5, `${report.sourceUpload} copies with control messages`);
  },
);

for (const attack of ["corrupt", "replay", "nothing"] as const) {
  test(`live: fifteen pages play among five hostile pages (${attack}), and none of the wrong bytes`, () => {
    for (const seed of SEEDS) {
      // The attack begins 2 s after the measurement.
      const report = run({ peers: 15, attackers: 5, attack, seconds: 12, seed });
      assert.equal(report.wrongPieces, 0, `seed ${seed}`);
      assert.equal(report.innocentBans, 0, `seed ${seed}`);
      assert.ok(onTime(report) >= 0.999, `seed ${seed}: ${onTime(report)} on time`);
      // A ban follows the first wrong chunk; a poisoner that is not asked for chunks stays connected.
      if (attack === "corrupt") assert.ok(report.banned >= 8, `seed ${seed}: ${report.banned} bans`);
    }
  });
}
