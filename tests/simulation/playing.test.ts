import assert from "node:assert/strict";
import { test } from "node:test";
import { Endgame } from "../../src/protocol/swarm/endgame.ts";
import { isFastRun } from "../parts/test-tiers.ts";
import { pex, runScenario } from "./scenarios.ts";
import type { Report } from "./world.ts";

const SEEDS = isFastRun ? [1] : [1, 2];

/** Conditions of every scenario: all delivered bytes are correct and complete, and nothing unneeded is
 * fetched. */
function assertSound(report: Report): void {
  assert.ok(report.isComplete, "playback completes");
  assert.equal(report.wrongPieces, 0, "wrong bytes");
  assert.equal(report.unwantedPieces, 0, "pieces outside all wants");
  assert.equal(report.innocentBans, 0, "innocents banned");
}

function scenario(name: string, criterion: string, check: (report: Report) => void): void {
  for (const seed of SEEDS) {
    test(`Swarm, simulated, ${name} (seed ${seed}): ${criterion}`, () => {
      const report = runScenario(name, seed);
      try {
        assertSound(report);
        check(report);
      } catch (thrown) {
        console.log(report);
        throw thrown;
      }
    });
  }
}

scenario("clean", "starts within a second, never stalls, almost no duplicates", (report) => {
  assert.ok(report.startMs! <= 1_000);
  assert.equal(report.stalls, 0);
  assert.ok(report.wastePercent <= 1);
});

scenario("magnet", "starts within 1.3 s from an infohash alone", (report) => {
  assert.ok(report.startMs! <= 1_300);
  assert.equal(report.stalls, 0);
});

scenario("magnet-liars", "wrong metadata from half of the peers costs half a second at most", (report) => {
  assert.ok(report.startMs! <= 1_800);
  assert.equal(report.stalls, 0);
});

scenario("magnet-silent10", "ten peers that answer no request cost two seconds at most", (report) => {
  assert.ok(report.startMs! <= 3_000);
});

scenario("magnet-silent50", "fifty peers that answer no request cost three seconds at most", (report) => {
  assert.ok(report.startMs! <= 4_000);
});

scenario("freeze", "a seeder that freezes with urgent blocks stalls no player", (report) => {
  assert.equal(report.stalls, 0);
  // The data in the seeder's buffers arrives late when it continues: up to 2 MiB of these 24.
  assert.ok(report.wastePercent <= 12);
});

scenario("drip", "peers that send one byte a second do not delay playback", (report) => {
  assert.ok(report.startMs! <= 2_500);
  assert.equal(report.stalls, 0);
});

scenario("churn", "half of the peers leave each 30 s: no stall at twice the supply", (report) => {
  assert.equal(report.stalls, 0);
});

scenario("readers", "three readers of one transfer do not delay each other", (report) => {
  assert.ok(report.startMs! <= 1_500);
  assert.equal(report.stalls, 0);
  assert.ok(report.wastePercent <= 1);
});

scenario("seek", "a far seek delivers its first byte as early as a start", (report) => {
  assert.ok(report.firstByteMs! <= 700);
  assert.equal(report.stalls, 0);
});

scenario("loss", "100 ms and 2 % loss at 1.5 × the bitrate: no stall after the start", (report) => {
  assert.equal(report.stalls, 0);
  assert.ok(report.wastePercent <= 5);
});

scenario("crowd", "eight players at the same position feed each other", (report) => {
  assert.ok(report.seedCopies <= 4);
  assert.ok(report.stalledMs <= 8 * 3_000, `${report.stalledMs} ms stalled by eight players`);
});

scenario("pex", "finds the others through the only peer it knows", (report) => {
  assert.ok(report.startMs! <= 5_000);
  assert.ok(report.stalledMs <= 2_000);
});

test("Swarm, simulated, pex of private content: no peer is learned (BEP 27)", () => {
  const world = pex(1, true);
  const player = world.nodes.at(-1)!;
  assert.equal(player.swarm.figures(world.events.now).knownCandidates, 1);
});

test("Endgame.round: without it, a seeder that freezes stalls the player", () => {
  const { round } = Endgame.prototype;
  Endgame.prototype.round = () => {};
  try {
    const report = runScenario("freeze", 1);
    assert.ok(report.stalls > 0 || !report.isComplete, "the scenario shows nothing");
  } finally {
    Endgame.prototype.round = round;
  }
});
