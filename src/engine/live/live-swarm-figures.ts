import type { Instant } from "../../base/time.ts";
import type { SwarmFigures, TrackerFigures } from "../../swarm/contract.ts";
import { NO_FIGURES } from "../../swarm/figures.ts";
import type { LiveFigures } from "../../swarm/live/contract.ts";
import type { LiveConnection } from "./live-connection.ts";

/** What is known besides the connections. Totals in bytes. */
export interface LiveSwarmTotals {
  readonly downloaded: number;
  readonly uploaded: number;
  /** Addresses that we were told of, and those that are banned. */
  readonly known: number;
  readonly banned: number;
  /** Absent where there are no trackers for us. */
  readonly trackers: TrackerFigures | undefined;
  readonly live: LiveFigures;
  /** See {@link SwarmFigures}. */
  readonly heldToBytesPerSecond: number;
}

/** The figures of a live swarm in the form that all swarms have; of its peers that are ready. */
export function liveSwarmFigures(
  ready: readonly LiveConnection[],
  totals: LiveSwarmTotals,
  now: Instant,
): SwarmFigures {
  const peers = ready.map((connection) => connection.figures(now));
  const { live, known, banned, trackers } = totals;
  return {
    ...NO_FIGURES,
    connectedPeers: peers.length,
    knownCandidates: known,
    unchokedByPeers: live.parents,
    seeds: ready.filter(({ about }) => about && about.role !== "viewer").length,
    bytesPerSecondDown: peers.reduce((sum, peer) => sum + peer.bytesPerSecondDown, 0),
    bytesPerSecondUp: peers.reduce((sum, peer) => sum + peer.bytesPerSecondUp, 0),
    downloaded: totals.downloaded,
    uploaded: totals.uploaded,
    wasted: live.duplicateBytes,
    hasMetadata: true,
    heldToBytesPerSecond: totals.heldToBytesPerSecond,
    bannedPeers: banned,
    trackers: trackers ?? NO_FIGURES.trackers,
    peers,
  };
}
