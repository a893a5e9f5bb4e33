import type { SwarmFigures } from "../../swarm/contract.ts";
import type { LiveFigures } from "../../swarm/live/contract.ts";
import type { BroadcastFigures } from "./broadcast-contract.ts";

/** What is known of a broadcast at a moment. */
export interface BroadcastFacts {
  readonly live: LiveFigures;
  readonly swarm: Pick<SwarmFigures, "bytesPerSecondUp" | "uploaded">;
  /** The newest piece that was sent. */
  readonly seq: number | undefined;
  readonly pieceAtMs: number | undefined;
  readonly bytesPerSecond: number | undefined;
  /** How long nothing has come from the source; undefined where nothing ever has. */
  readonly silentMs: number | undefined;
  /** What went wrong with the source last. */
  readonly problem: string | undefined;
  readonly isForked: boolean;
  readonly isOver: boolean;
}

/** A source that says nothing for longer is silent: viewers have no more than that before they wait. */
const SILENT_MS = 2000;

/** How a broadcast is doing. */
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

/** Who stands by is not asked here. */
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
      return "it is over";
    case "forked":
      return "somebody else broadcasts with this key, or this program runs twice with copies of it";
    case "waiting":
      return `nothing has come from the source yet${why}`;
    case "silent":
      return `nothing comes from the source for ${Math.floor(facts.silentMs! / 1000)} s${why}`;
    case "late": {
      const rate = megabits(facts.swarm.bytesPerSecondUp);
      return `${counted(facts.live.starvingPeers ?? 0, "peer")} of ${facts.live.peers} too late; we upload ${rate}`;
    }
    case "good":
      return `${counted(facts.live.peers, "peer")}; we upload ${megabits(facts.swarm.bytesPerSecondUp)}`;
  }
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}

function megabits(bytesPerSecond: number): string {
  return `${((8 * bytesPerSecond) / 1e6).toFixed(1)} Mbit/s`;
}
