import assert from "node:assert/strict";
import { test } from "node:test";
import { peerSearchSummary } from "../../../src/playback/diagnosis/peer-search.ts";
import type { SwarmFigures, TrackerFigures } from "../../../src/protocol/swarm/contract.ts";
import { NO_FIGURES } from "../../../src/protocol/swarm/figures.ts";

const summary = (trackers: Partial<TrackerFigures>, knownCandidates = 0) =>
  peerSearchSummary({
    trackers: {
      known: 2,
      answered: 0,
      failing: 0,
      problem: undefined,
      seeds: undefined,
      leechers: undefined,
      ...trackers,
    },
    knownCandidates,
  } as SwarmFigures);

test("peerSearchSummary: combines tracker answers, unreachable addresses and web seed errors", () => {
  const cases: readonly (readonly [string, string])[] = [
    [summary({ known: 0 }), "the link names no tracker"],
    [summary({ known: 0 }, 2), "the link names no tracker, none of 2 known addresses answered"],
    [summary({}), "no tracker has answered"],
    [summary({ problem: "timed out" }), "no tracker answered: timed out"],
    [
      summary({ problem: "timed out" }, 1),
      "no tracker answered: timed out, the only known address did not answer",
    ],
    [summary({ answered: 2, seeds: 0 }), "2 trackers answered and know 0 seeds"],
    [
      summary({ answered: 1, seeds: 1 }, 3),
      "1 tracker answered and knows 1 seed, none of 3 known addresses answered",
    ],
    [summary({ answered: 1 }), "1 tracker answered without the number of seeds"],
  ];
  const seeds = { ...NO_FIGURES, webSeedProblem: "w.example: the server answered 403" };
  assert.equal(
    peerSearchSummary(seeds),
    "the link names no tracker; web seed w.example: the server answered 403",
  );
  for (const [actual, expected] of cases) assert.equal(actual, expected);
});
