import type { SwarmFigures } from "../../swarm/contract.ts";

/** What a player waits for. `player`: for nothing here. */
export type HoldUpCode =
  | "no_peers"
  | "no_metadata"
  | "no_seed"
  | "choked"
  | "slow_peers"
  | "catching_up"
  | "own_limit"
  | "disk"
  | "source"
  | "server"
  | "player";

/** Why a player waits. */
export interface HoldUp {
  readonly code: HoldUpCode;
  /** One English sentence for people. */
  readonly sentence: string;
  readonly numbers: HoldUpNumbers;
}

/** The numbers behind the sentence, by the names that `stat` tells them with. */
export type HoldUpNumbers = Readonly<Record<string, number>>;

/** What is known of a session at one moment. */
export interface PlaybackFacts {
  /** So long it has waited for bytes. */
  readonly waitingMs: number;
  readonly transport: "bt" | "hls" | "wrapper";
  readonly figures: SwarmFigures;
  /** What playing it takes, on average; undefined where that is not known. */
  readonly neededBytesPerSecond: number | undefined;
  /** Bytes a second; 0 for none. */
  readonly downloadLimit: number;
  readonly live: LiveFacts | undefined;
}

/** What is known of a live stream besides. */
export interface LiveFacts {
  /** We broadcast it ourselves. */
  readonly isOwn: boolean;
  /** Peers that give it. */
  readonly parents: number;
  readonly hasEnded: boolean;
  /** Since when nothing new of the source has been heard of. */
  readonly silentMs: number;
}
