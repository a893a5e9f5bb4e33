import assert from "node:assert/strict";
import { test } from "node:test";
import { isFastRun } from "../../parts/test-tiers.ts";
import { ATTACKS } from "./hostile-peer.ts";
import { type LiveScenario, LiveWorld, SMALL } from "./live-world.ts";

const SEEDS = isFastRun ? [1] : [1, 2, 3, 4, 5];
const ATTACKERS = 10;
const MAX_STALL_MS = 500;
/** Processes of one machine, and longer pieces, as in `tests/bench/live-attacks.ts`. */
const ONE_MACHINE = { stripes: 8, pieceMs: 250, bytesPerSecond: 187_500, loopback: 1 };
/** The same there, where pulls take no time. */
const MAX_STALL_ON_ONE_MACHINE_MS = 320;
const MAX_START_MS = 3_000;

/** A viewer, its source, and ten hostile peers. */
function attacked(changes: Partial<LiveScenario>, maxStallMs = MAX_STALL_MS): void {
  for (const seed of SEEDS) {
    const scenario = {
      ...SMALL,
      peers: 1,
      natPercent: 0,
      seconds: 8,
      uploads: [[1, 2]] as const,
      attackers: ATTACKERS,
      ...changes,
      seed,
    };
    const report = new LiveWorld(scenario).run();
    assert.ok(
      report.expectedChunks > (7_100 * scenario.stripes) / scenario.pieceMs,
      `seed ${seed}: ${report.expectedChunks} chunks`,
    );
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
    attacked({ attack, attacksEarly: true, attacksSource: true });
  });
}

for (const attack of ["lossy", "corrupt"] as const) {
  for (const attacksEarly of [false, true]) {
    // Without early pulls from the source and requests for new headers, 600 to 1,000 ms.
    test(`live: a viewer on the machine of its source plays among ten hostile peers (${attack}${attacksEarly ? ", there before it" : ""})`, () => {
      attacked({ ...ONE_MACHINE, attack, attacksEarly, attacksSource: true }, MAX_STALL_ON_ONE_MACHINE_MS);
    });
  }
}

test("live: viewers displace free riders that claim upload and hold the places of the source", () => {
  // Three to six honest viewers among 16 peers. When free riders kept their places, 73 to 82 % arrived on time.
  for (const seed of isFastRun ? [6] : [6, 7]) {
    const riders = { peers: 16, blackHolePercent: 60, blackHoleUpload: 10, natPercent: 0, seconds: 10 };
    const report = new LiveWorld({ ...SMALL, ...riders, seed }).run();
    assert.ok(report.expectedChunks > 3_000, `seed ${seed}: ${report.expectedChunks} chunks`);
    const missed = report.missedChunks / report.expectedChunks;
    assert.ok(missed < 0.01, `seed ${seed}: ${(100 * missed).toFixed(1)} % missed`);
    assert.equal(report.innocentBans, 0, `seed ${seed}`);
  }
});

/** Thirty viewers, and a tenth as many hostile peers. The attack of each changes when a new peer takes its place. */
const MIXED: LiveScenario = {
  ...{ ...SMALL, peers: 30, stripes: 8, pieceMs: 250, bytesPerSecond: 125_000 },
  ...{ attackers: 3, attack: "mixed", attacksSource: true, attacksEarly: true, attackSeconds: 4 },
};

test("live: thirty viewers among three hostile peers of changing kinds miss nothing", () => {
  for (const seed of isFastRun ? [1] : [1, 2]) {
    const seconds = isFastRun ? 8 : 20;
    const report = new LiveWorld({ ...MIXED, seed, seconds }).run();
    assert.ok(
      report.expectedChunks > MIXED.peers * (seconds - 4) * 32,
      `seed ${seed}: ${report.expectedChunks} chunks`,
    );
    assert.equal(report.missedChunks, 0, `seed ${seed}`);
    assert.equal(report.innocentBans, 0, `seed ${seed}`);
    assert.equal(report.wrongPieces, 0, `seed ${seed}`);
    assert.ok(report.banned > 0, `seed ${seed}: no hostile peer was banned`);
  }
});
