import type { DiagnosisRow } from "../../base/diagnosis.ts";
import type { PeerOrigin, SwarmFigures } from "../../protocol/swarm/contract.ts";

/** Texts for how peers were found. */
const ORIGIN_TEXTS: Readonly<Record<PeerOrigin, string>> = {
  tracker: "from trackers",
  dht: "from the DHT",
  lsd: "from this network",
  pex: "from other peers",
  magnet: "from links",
  incoming: "incoming",
  web: "web seeds",
  webrtc: "over WebRTC",
};

/** Returns the rows about finding peers, over all transfers. */
export function peerDiscoveryRows(swarms: readonly SwarmFigures[]): DiagnosisRow[] {
  if (swarms.length === 0)
    return [
      { name: "Peers", level: "ok", text: "Nothing is playing, so the engine does not look for peers." },
    ];
  const peers = swarms.flatMap((swarm) => swarm.peers);
  return [peersRow(peers.map(({ origin }) => origin)), trackersRow(swarms)];
}

function peersRow(origins: readonly PeerOrigin[]): DiagnosisRow {
  if (origins.length === 0) {
    return {
      name: "Peers",
      level: "fail",
      text: "No peer is connected.",
      advice: "The rows below show which ways to find peers work. If all of them do, the swarm has no peers.",
    };
  }
  const counts = new Map<PeerOrigin, number>();
  for (const origin of origins) counts.set(origin, (counts.get(origin) ?? 0) + 1);
  const parts = [...counts]
    .sort((a, b) => b[1] - a[1])
    .map(([origin, count]) => `${count} ${ORIGIN_TEXTS[origin]}`);
  const noun = origins.length === 1 ? "peer is" : "peers are";
  return { name: "Peers", level: "ok", text: `${origins.length} ${noun} connected: ${parts.join(", ")}.` };
}

function trackersRow(swarms: readonly SwarmFigures[]): DiagnosisRow {
  const name = "Trackers";
  const sum = (of: (figures: SwarmFigures["trackers"]) => number) =>
    swarms.reduce((all, { trackers }) => all + of(trackers), 0);
  const [known, answered, failing] = [
    sum((each) => each.known),
    sum((each) => each.answered),
    sum((each) => each.failing),
  ];
  if (known === 0) return { name, level: "note", text: "No link names a tracker." };
  const text = `${answered} of ${known} have answered; the last request to ${failing} failed.`;
  if (answered > 0) return { name, level: "ok", text };
  const problem = swarms.find(({ trackers }) => trackers.problem !== undefined)?.trackers.problem;
  return {
    name,
    level: "warn",
    text: problem === undefined ? text : `${text} The last error: ${problem}.`,
    advice: "Single trackers often fail. If all of them fail, check DNS and the firewall.",
  };
}
