import type { PeerAddress } from "../../base/address.ts";
import type { Infohash } from "../../base/ids.ts";
import type { PeerOrigin, SwarmFigures } from "../../swarm/contract.ts";

/** What a player waits for. `player`: for nothing here. */
export type HoldUpCode =
  | "proxy"
  | "no_peers"
  | "no_metadata"
  | "no_seed"
  | "choked"
  | "slow_peers"
  | "catching_up"
  | "own_limit"
  | "disk"
  | "source"
  | "clock"
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
  /** The setting, in bytes a second; 0 for none. At other times another limit may hold. */
  readonly downloadLimit: number;
  /** Why the proxy carries nothing; undefined where it does, or there is none. */
  readonly proxyProblem: string | undefined;
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
  /** So far ahead of our clock that nothing of it is played; 0 where it is not. */
  readonly minutesAhead: number;
}

/** How something is: as it should be, worth knowing, likely to be noticed, broken. */
export type DiagnosisLevel = "ok" | "note" | "warn" | "fail";

/** One thing that was looked at. */
export interface DiagnosisRow {
  /** A word or two, such as `Port`. */
  readonly name: string;
  readonly level: DiagnosisLevel;
  /** What was found, in a sentence. */
  readonly text: string;
  /** What to do about it, where there is something to do. */
  readonly advice?: string;
}

/** What the engine knows of itself. */
export interface Diagnosis {
  readonly rows: readonly DiagnosisRow[];
  readonly streams: readonly StreamDiagnosis[];
}

/** One transfer, and who gives it how well. */
export interface StreamDiagnosis {
  readonly infohash: Infohash;
  readonly name: string;
  /** Those who play it, and why each waits; undefined where it does not. */
  readonly holdUps: readonly (HoldUp | undefined)[];
  /** How many peers came from where. */
  readonly origins: Readonly<Record<string, number>>;
  readonly peers: readonly PeerDiagnosis[];
}

/** One peer, and what stands in its way. Rates in bytes a second. */
export interface PeerDiagnosis {
  readonly address: PeerAddress;
  readonly client: string;
  readonly origin: PeerOrigin;
  readonly bytesPerSecondDown: number;
  readonly bytesPerSecondUp: number;
  /** Why it gives nothing, or little; undefined where it gives well, or has nothing that we want. */
  readonly slow: string | undefined;
}
