import type { Instant } from "../../base/time.ts";
import type { PeerFigures, SwarmFigures } from "./contract.ts";
import type { Peer } from "./peer.ts";
import type { SwarmState } from "./state.ts";

/** Returns the statistics of a swarm at `now`. */
export function swarmFigures(state: SwarmState, knownTrackers: number, now: Instant): SwarmFigures {
  const open = [...state.peers.values()].filter((peer) => peer.stage === "open");
  return {
    connectedPeers: open.length,
    webSeeds: open.filter((peer) => peer.isWebSeed).length,
    webSeedProblem: undefined,
    knownCandidates: state.candidates.size,
    unchokedByPeers: open.filter((peer) => !peer.isChoking).length,
    seeds: open.filter((peer) => peer.pieces.isAll).length,
    bytesPerSecondDown: state.down.bytesPerSecond(now),
    bytesPerSecondUp: state.up.bytesPerSecond(now),
    downloaded: state.down.total,
    uploaded: state.up.total,
    wasted: state.wasted,
    piecesHeld: state.pieces?.have.count ?? 0,
    pieceCount: state.pieces?.layout.pieceCount ?? 0,
    hasMetadata: state.pieces !== undefined,
    lacksLayers: state.incompleteLayout !== undefined,
    ...missingPieces(state, open),
    isOutOfMemory: state.isPickingLimited,
    limitedToBytesPerSecond: state.setup.limits.download.limitedToBytesPerSecond(now),
    bannedPeers: state.bannedPeers,
    trackers: state.claims.figures(knownTrackers),
    peers: open.map((peer) => peerFigures(peer, now)),
  };
}

/** Urgent pieces examined: enough to diagnose a wait without checking every piece against every peer. */
const MAX_EXAMINED = 64;

/** Counts the missing pieces that readers need next. */
function missingPieces({ pieces, wants }: SwarmState, open: readonly Peer[]) {
  if (!pieces) return { needed: 0, nowhere: 0 };
  const missing = wants.urgent
    .slice(wants.firstUrgent(pieces.have))
    .filter((piece) => !pieces.have.has(piece))
    .slice(0, MAX_EXAMINED);
  const nowhere = missing.filter((piece) => !open.some((peer) => peer.pieces.has(piece)));
  return { needed: missing.length, nowhere: nowhere.length };
}

function peerFigures(peer: Peer, now: Instant): PeerFigures {
  return {
    address: peer.address,
    origin: peer.origin,
    client: peer.client,
    bytesPerSecondDown: peer.down.bytesPerSecond(now),
    bytesPerSecondUp: peer.up.bytesPerSecond(now),
    progress: peer.pieces.progress,
    flags: flagsOf(peer),
  };
}

/** `d` downloading (`D`: interested but choked), `u` and `U` the same for uploads, `i` incoming, `s` snubbed. */
function flagsOf(peer: Peer): string {
  const down = peer.isInteresting ? (peer.isChoking ? "D" : "d") : "";
  const up = peer.isInterested ? (peer.isChoked ? "U" : "u") : "";
  return `${down}${up}${peer.isIncoming ? "i" : ""}${peer.isSnubbing ? "s" : ""}`;
}

/** The statistics of a swarm before it has started. */
export const NO_FIGURES: SwarmFigures = {
  connectedPeers: 0,
  webSeeds: 0,
  webSeedProblem: undefined,
  knownCandidates: 0,
  unchokedByPeers: 0,
  seeds: 0,
  bytesPerSecondDown: 0,
  bytesPerSecondUp: 0,
  downloaded: 0,
  uploaded: 0,
  wasted: 0,
  piecesHeld: 0,
  pieceCount: 0,
  hasMetadata: false,
  lacksLayers: false,
  needed: 0,
  nowhere: 0,
  isOutOfMemory: false,
  limitedToBytesPerSecond: 0,
  bannedPeers: 0,
  trackers: { known: 0, answered: 0, failing: 0, problem: undefined, seeds: undefined, leechers: undefined },
  peers: [],
};
