import type { Instant } from "../../base/time.ts";
import type { ActiveTransfer } from "../contract.ts";
import type { BroadcastFigures } from "./broadcast-contract.ts";
import type { StandbyWatch } from "./standby-watch.ts";

/** What is known of a standby at a moment. */
export interface StandbyFacts {
  readonly transfer: ActiveTransfer | undefined;
  readonly watch: StandbyWatch | undefined;
  readonly isReady: boolean;
  /** What went wrong with its own source last. */
  readonly problem: string | undefined;
  /** How long it waits for somebody to be on air. */
  readonly startMs: number;
  readonly isOver: boolean;
  readonly now: Instant;
}

/** How a standby is doing while somebody else is on air. */
export function standbyFigures(facts: StandbyFacts): BroadcastFigures {
  const { transfer, watch, isOver } = facts;
  const live = transfer?.live?.figures();
  const swarm = transfer?.figures;
  return {
    health: isOver ? "ended" : "standby",
    remark: isOver ? "it is over" : remarkOf(facts),
    peers: live?.peers ?? 0,
    children: live?.children ?? 0,
    seq: watch?.seen?.seq,
    pieceAtMs: watch?.seen?.timestampMs,
    bytesPerSecond: undefined,
    uploadBytesPerSecond: swarm?.bytesPerSecondUp ?? 0,
    uploaded: swarm?.uploaded ?? 0,
  };
}

function remarkOf(facts: StandbyFacts): string {
  const { watch, isReady, problem, startMs, now } = facts;
  if (!watch) return "between two states";
  const own = isReady ? "" : `; its own source gives nothing${problem === undefined ? "" : ` (${problem})`}`;
  const { seen } = watch;
  const silentMs = watch.silentMs(now);
  switch (watch.state) {
    case "start": {
      const leftSeconds = Math.max(0, Math.ceil((startMs - silentMs) / 1000));
      return `nobody is heard yet; on air in ${leftSeconds} s if it stays so${own}`;
    }
    case "follow":
      return `on air elsewhere, epoch ${seen!.epoch}, head ${seen!.seq}${own}`;
    case "silent":
      return `nothing new for ${(silentMs / 1000).toFixed(1)} s${own}`;
    case "alone":
      return `no peer says anything for ${(silentMs / 1000).toFixed(0)} s; the network may be what is gone${own}`;
  }
}
