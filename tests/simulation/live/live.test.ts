import assert from "node:assert/strict";
import { test } from "node:test";
import type { LiveRules } from "../../../src/swarm/live/contract.ts";
import { LIVE_RULES } from "../../../src/swarm/live/limits.ts";
import { type LiveReport, type LiveScenario, LiveWorld, SMALL } from "./live-world.ts";

/** Twice the bitrate on average; one in five uploads nothing. */
const AMPLE = [
  [0.2, 0],
  [0.8, 2.5],
] as const;
/** 1.4 times the bitrate on average. */
const SCARCE = [
  [0.2, 0],
  [0.8, 1.75],
] as const;

function run(scenario: Partial<LiveScenario>, rules: Partial<LiveRules> = {}): LiveReport {
  return new LiveWorld({ ...SMALL, ...scenario, rules: { ...LIVE_RULES, ...rules } }).run();
}

function missedShare({ missedChunks, expectedChunks }: LiveReport): number {
  return missedChunks / expectedChunks;
}

test("live: thirty viewers get everything in time, and nobody is banned", () => {
  const report = run({ peers: 30, uploads: AMPLE });
  assert.equal(report.missedChunks, 0);
  assert.equal(report.wrongPieces, 0);
  assert.equal(report.banned, 0);
  assert.ok(report.expectedChunks > 30 * 16 * 70, `${report.expectedChunks} chunks`);
  assert.ok(report.delayMs.quantile(0.95) < 1_500, `${report.delayMs.quantile(0.95)} ms`);
});

test("live: the same seed gives the same trace, another seed another", () => {
  const once = run({ peers: 10, seconds: 3, churnPercent: 100 });
  assert.equal(run({ peers: 10, seconds: 3, churnPercent: 100 }).traceHash, once.traceHash);
  assert.notEqual(run({ peers: 10, seconds: 3, churnPercent: 100, seed: 2 }).traceHash, once.traceHash);
});

test("live: viewers vanish without a word, 120 % a minute: pulls heal what that tears", () => {
  const scenario = { peers: 40, churnPercent: 120, seconds: 20, uploads: AMPLE, seed: 5 };
  assert.ok(missedShare(run(scenario)) < 1e-4);
  assert.ok(missedShare(run(scenario, { pulls: false })) > 1e-3);
});

test("live: an uplink that is promised away in full never drains its queue", () => {
  const scenario = { peers: 20, seconds: 5, sourceUpload: 2, uploads: AMPLE, seed: 3 };
  assert.ok(missedShare(run(scenario)) < 1e-4);
  assert.ok(missedShare(run(scenario, { headroom: 1.3 })) > 5e-2);
});

test("live: newcomers of a crowd who take three seconds of backlog instead of one make it late for all", () => {
  const scenario = { peers: 120, crowd: 15, uploads: SCARCE, seed: 3 };
  const one = run(scenario);
  const three = run(scenario, { backfillMs: 3_000 });
  assert.ok(missedShare(one) < 1e-4, `${missedShare(one)} missed`);
  assert.ok(missedShare(three) > 1e-3, `${missedShare(three)} missed`);
  assert.ok(one.delayMs.quantile(0.95) < three.delayMs.quantile(0.95));
});

test("live: parents that say yes and never begin are left at once, or the source has to stand in for them", () => {
  const holes = { blackHolePercent: 20, blackHoleUpload: 4 };
  const scenario = { peers: 60, seconds: 8, seed: 5, uploads: AMPLE, ...holes };
  const quick = run(scenario);
  const patient = run(scenario, { watchesFirstChunk: false });
  assert.equal(quick.missedChunks, 0);
  assert.ok(quick.sourceCopies < 2.5, `${quick.sourceCopies} copies`);
  assert.ok(patient.sourceCopies > 3, `${patient.sourceCopies} copies`);
  assert.ok(quick.delayMs.quantile(0.999) < patient.delayMs.quantile(0.999));
});
