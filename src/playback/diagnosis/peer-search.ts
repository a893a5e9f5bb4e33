import type { SwarmFigures } from "../../protocol/swarm/contract.ts";

/** Summarizes for the user what trackers and web seeds answered, and how many known addresses could not be reached. */
export function peerSearchSummary(figures: SwarmFigures): string {
  const { knownCandidates, webSeedProblem } = figures;
  const parts = [trackersSummary(figures)];
  if (knownCandidates === 1) parts.push("the only known address did not answer");
  if (knownCandidates > 1) parts.push(`none of ${knownCandidates} known addresses answered`);
  const summary = parts.join(", ");
  return webSeedProblem === undefined ? summary : `${summary}; web seed ${webSeedProblem}`;
}

function trackersSummary({ trackers: { known, answered, problem, seeds } }: SwarmFigures): string {
  if (known === 0) return "the link names no tracker";
  if (answered === 0)
    return problem === undefined ? "no tracker has answered" : `no tracker answered: ${problem}`;
  const many = answered > 1;
  const who = many ? `${answered} trackers answered and know` : "1 tracker answered and knows";
  if (seeds !== undefined) return `${who} ${seeds} seed${seeds === 1 ? "" : "s"}`;
  return `${answered} tracker${many ? "s" : ""} answered without the number of seeds`;
}
