import type { PeerOrigin, SwarmFigures } from "../../swarm/contract.ts";
import type { DiagnosisRow } from "./contract.ts";

/** How peers are called that were found this way. */
const ORIGIN_WORDS: Readonly<Record<PeerOrigin, string>> = {
  tracker: "from trackers",
  dht: "from the DHT",
  lsd: "from this network",
  pex: "from other peers",
  magnet: "from links",
  incoming: "called us",
  web: "web seeds",
};

/** How peers are found, over all transfers together. */
export function findingRows(swarms: readonly SwarmFigures[]): DiagnosisRow[] {
  if (swarms.length === 0)
    return [{ name: "Peers", level: "ok", text: "Nothing is played: no peers are looked for." }];
  const peers = swarms.flatMap((swarm) => swarm.peers);
  return [peersRow(peers.map(({ origin }) => origin)), ...trackersRow(swarms)];
}

function peersRow(origins: readonly PeerOrigin[]): DiagnosisRow {
  if (origins.length === 0) {
    return {
      name: "Peers",
      level: "fail",
      text: "No peer is connected.",
      advice: "See below how peers are looked for; with nobody in the swarm there is nothing to be done.",
    };
  }
  const counts = new Map<PeerOrigin, number>();
  for (const origin of origins) counts.set(origin, (counts.get(origin) ?? 0) + 1);
  const parts = [...counts]
    .sort((a, b) => b[1] - a[1])
    .map(([origin, count]) => `${count} ${ORIGIN_WORDS[origin]}`);
  return {
    name: "Peers",
    level: "ok",
    text: `${origins.length} ${origins.length === 1 ? "is" : "are"} connected: ${parts.join(", ")}.`,
  };
}

function trackersRow(swarms: readonly SwarmFigures[]): DiagnosisRow[] {
  const sum = (of: (figures: SwarmFigures["trackers"]) => number) =>
    swarms.reduce((all, { trackers }) => all + of(trackers), 0);
  const [known, answered, failing] = [
    sum((each) => each.known),
    sum((each) => each.answered),
    sum((each) => each.failing),
  ];
  if (known === 0) return [{ name: "Trackers", level: "note", text: "No link names a tracker." }];
  const text = `${answered} of ${known} have answered, ${failing} failed the last time.`;
  if (answered > 0) return [{ name: "Trackers", level: "ok", text }];
  const problem = swarms.find(({ trackers }) => trackers.problem !== undefined)?.trackers.problem;
  return [
    {
      name: "Trackers",
      level: "warn",
      text: problem === undefined ? text : `${text} The last one: ${problem}.`,
      advice: "Trackers come and go. Where all of them fail, look at DNS and the firewall.",
    },
  ];
}
