import assert from "node:assert/strict";
import { test } from "node:test";
import { trackerNews } from "../../src/engine/tracker-news.ts";
import type { SwarmFigures, TrackerFigures } from "../../src/swarm/contract.ts";
import { NO_FIGURES } from "../../src/swarm/figures.ts";

const news = (trackers: Partial<TrackerFigures>, knownCandidates = 0) =>
  trackerNews({
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

test("trackerNews tells why nobody is there, as far as trackers know", () => {
  const cases: readonly (readonly [string, string])[] = [
    [news({ known: 0 }), "the link names no tracker"],
    [news({ known: 0 }, 2), "no tracker, none of 2 addresses known answered"],
    [news({}), "no tracker has answered"],
    [news({ problem: "timed out" }), "no tracker answered: timed out"],
    [
      news({ problem: "timed out" }, 1),
      "no tracker answered: timed out, the one address known did not answer",
    ],
    [news({ answered: 2, seeds: 0 }), "2 trackers answered, they know of 0 seeds"],
    [
      news({ answered: 1, seeds: 1 }, 3),
      "1 tracker answered, it knows of 1 seed, none of 3 addresses known answered",
    ],
    [news({ answered: 1 }), "1 tracker answered, it does not tell how many seeds there are"],
  ];
  const seeds = { ...NO_FIGURES, webSeedProblem: "w.example: the server answered 403" };
  assert.equal(trackerNews(seeds), "the link names no tracker; web seed w.example: the server answered 403");
  for (const [said, expected] of cases) assert.equal(said, expected);
});
