import type { LiveFigures } from "../../protocol/live/contract.ts";
import type { SwarmFigures } from "../../protocol/swarm/contract.ts";
import type { BroadcastFigures } from "./broadcast-contract.ts";

/** The input of {@link broadcastFigures}. */
export interface BroadcastFacts {
  readonly live: LiveFigures;
  readonly swarm: Pick<SwarmFigures, "bytesPerSecondUp" | "uploaded">;
  /** Sequence number of the newest piece sent. */
  readonly seq: number | undefined;
  readonly pieceAtMs: number | undefined;
  readonly bytesPerSecond: number | undefined;
  /** Time since the source last sent data; undefined if it has sent none. */
  readonly silentMs: number | undefined;
  /** The last error of the source. */
  readonly problem: string | undefined;
  readonly isForked: boolean;
  readonly isOver: boolean;
}

/** A source counts as silent after this time without data, because viewers buffer no more than this. */
const SILENT_MS = 2000;

/** Returns the figures of a broadcast. */
export function broadcastFigures(facts: BroadcastFacts): BroadcastFigures {
  const { live, swarm } = facts;
  const health = healthOf(facts);
  return {
    health,
    remark: remarkOf(health, facts),
    peers: live.peers,
    children: live.children,
    seq: facts.seq,
    pieceAtMs: facts.pieceAtMs,
    bytesPerSecond: facts.bytesPerSecond,
    uploadBytesPerSecond: swarm.bytesPerSecondUp,
    uploaded: swarm.uploaded,
  };
}

/** The health of a broadcast on air. A standby reports its own figures. */
type Health = Exclude<BroadcastFigures["health"], "standby">;

function healthOf(facts: BroadcastFacts): Health {
  if (facts.isOver) return "ended";
  if (facts.isForked) return "forked";
  if (facts.silentMs === undefined) return "waiting";
  if (facts.silentMs > SILENT_MS) return "silent";
  return (facts.live.starvingPeers ?? 0) > 0 ? "late" : "good";
}

function remarkOf(health: Health, facts: BroadcastFacts): string {
  const why = facts.problem === undefined ? "" : ` (${facts.problem})`;
  switch (health) {
    case "ended":
      return "ended";
    case "forked":
      return "another program broadcasts with this key, or this program runs twice";
    case "waiting":
      return `no data from the source yet${why}`;
    case "silent":
      return `no data from the source for ${Math.floor(facts.silentMs! / 1000)} s${why}`;
    case "late": {
      const rate = megabits(facts.swarm.bytesPerSecondUp);
      return `${counted(facts.live.starvingPeers ?? 0, "peer")} of ${facts.live.peers} receive data too late; upload ${rate}`;
    }
    case "good":
      return `${counted(facts.live.peers, "peer")}; upload ${megabits(facts.swarm.bytesPerSecondUp)}`;
  }
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}

function megabits(bytesPerSecond: number): string {
  return `${((8 * bytesPerSecond) / 1e6).toFixed(1)} Mbit/s`;
}
