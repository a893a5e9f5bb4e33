import type { PeerAddress } from "../../base/address.ts";
import type { DiagnosisRow } from "../../base/diagnosis.ts";
import type { Infohash } from "../../base/ids.ts";
import type { PeerOrigin, SwarmFigures } from "../../protocol/swarm/contract.ts";

/** What a player waits for. `player`: the player requests nothing. Part of the interface. */
export type BufferingReason =
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
export interface Buffering {
  readonly code: BufferingReason;
  /** One English sentence for the user. */
  readonly sentence: string;
  /** The figures behind the sentence, under their names in `stat`. */
  readonly numbers: Readonly<Record<string, number>>;
}

/** The state of a session at one moment. */
export interface PlaybackFacts {
  /** How long the session has waited for bytes. */
  readonly waitingMs: number;
  readonly transport: "bt" | "hls" | "wrapper";
  readonly figures: SwarmFigures;
  /** Average bitrate of the media; undefined if not known. */
  readonly neededBytesPerSecond: number | undefined;
  /** The setting, in bytes per second; 0 for none. A schedule may set another limit. */
  readonly downloadLimit: number;
  /** Why the last attempt through the proxy failed; undefined if it succeeded or there is no proxy. */
  readonly proxyProblem: string | undefined;
  readonly live: LiveFacts | undefined;
}

/** Additional facts about a live stream. */
export interface LiveFacts {
  /** True if this engine broadcasts the stream. */
  readonly isOwn: boolean;
  /** Number of peers that send the stream. */
  readonly parents: number;
  readonly hasEnded: boolean;
  /** The infohash of the stream that replaces this one, if its key was changed. */
  readonly movedTo?: string | undefined;
  /** True if two programs sign the stream with one key. */
  readonly isForked: boolean;
  /** How long no peer has reported anything new of the source. */
  readonly silentMs: number;
  /** How far the stream is ahead of our clock if it cannot be played for that reason; else 0. */
  readonly minutesAhead: number;
}

/** The state of the engine, for the operator. */
export interface Diagnosis {
  readonly rows: readonly DiagnosisRow[];
  readonly streams: readonly StreamDiagnosis[];
}

/** The state of one transfer and its peers. */
export interface StreamDiagnosis {
  readonly infohash: Infohash;
  readonly name: string;
  /** For each player why it waits; undefined for a player that does not. */
  readonly playersBuffering: readonly (Buffering | undefined)[];
  /** Number of peers by origin. */
  readonly origins: Readonly<Record<string, number>>;
  readonly peers: readonly PeerDiagnosis[];
}

/** The state of one peer. */
export interface PeerDiagnosis {
  readonly address: PeerAddress;
  readonly client: string;
  readonly origin: PeerOrigin;
  readonly bytesPerSecondDown: number;
  readonly bytesPerSecondUp: number;
  /** Why the peer sends little or nothing; undefined if it sends well or has nothing that we need. */
  readonly slow: string | undefined;
}
