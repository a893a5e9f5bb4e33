import type { SwarmFigures } from "../swarm/contract.ts";

/** What trackers and web seeds said, in words for whoever waits in vain: why nothing plays, as far as anybody knows. */
export function trackerNews(figures: SwarmFigures): string {
  const { webSeedProblem } = figures;
  const news = peerNews(figures);
  return webSeedProblem === undefined ? news : `${news}; web seed ${webSeedProblem}`;
}

function peerNews({ trackers, knownCandidates }: SwarmFigures): string {
  if (trackers.known === 0) {
    return knownCandidates === 0 ? "the link names no tracker" : `no tracker, ${unreached(knownCandidates)}`;
  }
  if (trackers.answered === 0) {
    const why =
      trackers.problem === undefined ? "no tracker has answered" : `no tracker answered: ${trackers.problem}`;
    return knownCandidates === 0 ? why : `${why}, ${unreached(knownCandidates)}`;
  }
  const who =
    trackers.answered === 1 ? "1 tracker answered, it" : `${trackers.answered} trackers answered, they`;
  const many = trackers.answered > 1;
  const what =
    trackers.seeds === undefined
      ? `${many ? "do" : "does"} not tell how many seeds there are`
      : `${many ? "know" : "knows"} of ${counted(trackers.seeds, "seed")}`;
  return knownCandidates === 0 ? `${who} ${what}` : `${who} ${what}, ${unreached(knownCandidates)}`;
}

function unreached(addresses: number): string {
  return addresses === 1
    ? "the one address known did not answer"
    : `none of ${addresses} addresses known answered`;
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
