import assert from "node:assert/strict";
import { test } from "node:test";
import { Relief } from "../../src/swarm/relief.ts";
import { pex, runScenario } from "./scenarios.ts";
import type { Report } from "./world.ts";

const SEEDS = [1, 2];

/** What holds in every scenario: the truth is delivered, all of it, and nothing that nobody wants is fetched. */
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

scenario("clean", "starts within a second, never stalls, next to no duplicates", (report) => {
  assert.ok(report.startMs! <= 1_000);
  assert.equal(report.stalls, 0);
  assert.ok(report.wastePercent <= 1);
});

scenario("magnet", "starts within 1.3 s from nothing but an infohash", (report) => {
  assert.ok(report.startMs! <= 1_300);
  assert.equal(report.stalls, 0);
});

scenario("magnet-liars", "wrong metadata from half of the peers costs half a second at most", (report) => {
  assert.ok(report.startMs! <= 1_800);
  assert.equal(report.stalls, 0);
});

scenario("freeze", "a seeder that freezes with urgent blocks stalls nobody", (report) => {
  assert.equal(report.stalls, 0);
  // What the seeder had in its buffers comes late when it thaws: up to 2 MiB of these 24.
  assert.ok(report.wastePercent <= 12);
});

scenario("drip", "peers that give a byte a second are worked around", (report) => {
  assert.ok(report.startMs! <= 2_500);
  assert.equal(report.stalls, 0);
});

scenario("churn", "half of the peers leave each 30 s: no stall at twice the supply", (report) => {
  assert.equal(report.stalls, 0);
});

scenario("readers", "three readers of one transfer do not hold each other up", (report) => {
  assert.ok(report.startMs! <= 1_500);
  assert.equal(report.stalls, 0);
  assert.ok(report.wastePercent <= 1);
});

scenario("seek", "a far seek has its first byte as soon as a start", (report) => {
  assert.ok(report.firstByteMs! <= 700);
  assert.equal(report.stalls, 0);
});

scenario("loss", "100 ms and 2 % loss at 1.5 × the bitrate: no stall after the start", (report) => {
  assert.equal(report.stalls, 0);
  assert.ok(report.wastePercent <= 5);
});

scenario("crowd", "eight players at one place feed each other", (report) => {
  assert.ok(report.seedCopies <= 4);
  assert.ok(report.stalledMs <= 8 * 3_000, `${report.stalledMs} ms stalled by eight players`);
});

scenario("pex", "finds the others through the only peer it knows", (report) => {
  assert.ok(report.startMs! <= 5_000);
  assert.ok(report.stalledMs <= 2_000);
});

test("Swarm, simulated, pex of private content: no peer is learnt of (BEP 27)", () => {
  const world = pex(1, true);
  const player = world.nodes.at(-1)!;
  assert.equal(player.swarm.figures(world.events.now).knownCandidates, 1);
});

test("Relief.round: without it a seeder that freezes does stall the player", () => {
  const { round } = Relief.prototype;
  Relief.prototype.round = () => {};
  try {
    const report = runScenario("freeze", 1);
    assert.ok(report.stalls > 0 || !report.isComplete, "the scenario shows nothing");
  } finally {
    Relief.prototype.round = round;
  }
});
