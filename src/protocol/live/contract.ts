import type { PeerAddress } from "../../base/address.ts";
import type { Random } from "../../base/random.ts";
import type { Instant } from "../../base/time.ts";
import type { PieceHeader } from "../../wire/live/header.ts";
import type { StatMessage } from "../../wire/live/stat.ts";
import type { Successor } from "../../wire/live/successor.ts";
import type { LiveAbout, LiveMessage, SignedHeader, SignedStat } from "./messages.ts";

/** Identifies one connection; never reused. The machine numbers outgoing connections (even), the driver
 * incoming ones (odd). */
export type LiveConnectionId = number;

/** The format of a live stream, from its transport file. */
export interface LiveLayout {
  /** Chunks of a piece: 4, 8 or 16. */
  readonly stripes: number;
  readonly pieceMs: number;
  readonly bytesPerSecond: number;
  readonly maxPieceBytes: number;
}

/** Parameters and dependencies of a live swarm. */
export interface LiveSetup {
  readonly about: LiveAbout;
  readonly layout: LiveLayout;
  /** A piece is skipped when it is later than this, relative to the fastest arrival. */
  readonly lagMs: number;
  /** How long pieces are kept for other peers. */
  readonly keepMs: number;
  readonly random: Random;
  /** UNIX time of the local clock at `now`, in ms. Used only to detect headers from the far future. */
  readonly unixMs: (now: Instant) => number;
  /** Returns whether the signature of a header is valid. The sender of an invalid header is banned. */
  readonly isSigned: (header: SignedHeader) => boolean;
  /** Returns whether a chunk has the length and hash that its header states. */
  readonly isValidChunk: (header: SignedHeader, stripe: number, bytes: Uint8Array) => boolean;
  /** Returns the 20-byte hash by which a header names its predecessor. */
  readonly hash: (header: Uint8Array) => Uint8Array;
  /** Returns whether the signature of a STAT is valid. The sender of an invalid STAT is banned. */
  readonly isSignedStat: (stat: SignedStat) => boolean;
  /** Returns the stream that a successor record names; undefined if the record is invalid. */
  readonly successorOf?: (record: Uint8Array) => Successor | undefined;
  /** Returns whether the source lists a relay at this address. The source keeps calling such relays. */
  readonly isRelay?: (address: PeerAddress) => boolean;
  /** For a source: another source may have started at the same moment, with the same key and epoch. */
  readonly mayShareEpoch?: boolean;
  /** Verified pieces, oldest first, that were received before this peer was restarted. A viewer continues after them if it can. */
  readonly restored?: readonly WholePiece[];
  /** Returns whether a private source may communicate with this address. If absent, all addresses are
   * allowed. */
  readonly isAllowed?: (address: PeerAddress) => boolean;
}

/** Inputs of a live swarm. */
export type LiveInput =
  | { readonly kind: "found"; readonly addresses: readonly PeerAddress[] }
  /** From the next start on, playback begins with the oldest segment of the last `ms`, if peers still have it. */
  | { readonly kind: "history"; readonly ms: number }
  /** The handshakes are done on an outgoing connection. */
  | {
      readonly kind: "opened";
      readonly connection: LiveConnectionId;
      readonly about: LiveAbout;
      readonly rttMs: number;
    }
  /** The handshakes are done on an incoming connection. */
  | {
      readonly kind: "accepted";
      readonly connection: LiveConnectionId;
      readonly about: LiveAbout;
      readonly rttMs: number;
      readonly address: PeerAddress;
      /** Other peers can connect to this address. */
      readonly isReachable: boolean;
    }
  /** The peer has proved that it is a relay or the source. */
  | { readonly kind: "proved"; readonly connection: LiveConnectionId; readonly role: "relay" | "source" }
  | { readonly kind: "closed"; readonly connection: LiveConnectionId }
  | { readonly kind: "message"; readonly connection: LiveConnectionId; readonly message: LiveMessage }
  /** The oldest live byte for this peer has waited this long for the network, which takes this many bytes a second. */
  | {
      readonly kind: "backlog";
      readonly connection: LiveConnectionId;
      readonly waitMs: number;
      readonly bytesPerSecond: number;
    }
  /** The local source has made a piece. */
  | ({ readonly kind: "produced" } & WholePiece)
  /** Chunks were fetched from the web. */
  | { readonly kind: "fetched"; readonly found: FetchedChunks }
  /** The local source publishes a STAT. */
  | { readonly kind: "stat"; readonly stat: SignedStat }
  /** A successor record was found outside the swarm; its signature is not verified yet. */
  | { readonly kind: "successor"; readonly record: Uint8Array }
  /** Without a player, a viewer stops receiving the stream but keeps its connections; with one, it joins again. */
  | { readonly kind: "idle"; readonly isIdle: boolean }
  /** From now on this peer offers this upload; with 0, children are served for some seconds while they find other parents. The handshake still states that of the setup. */
  | { readonly kind: "offer"; readonly uploadBytesPerSecond: number }
  | { readonly kind: "stop" };

/** Sending order of the driver: all data of a lower class goes before any of a higher class. */
export const PRIORITY = { control: 0, live: 1, repair: 2, backfill: 3 } as const;
export type LivePriority = (typeof PRIORITY)[keyof typeof PRIORITY];

/** Outputs of a live swarm. */
export type LiveOutput =
  | { readonly kind: "connect"; readonly connection: LiveConnectionId; readonly address: PeerAddress }
  | {
      readonly kind: "send";
      readonly connection: LiveConnectionId;
      readonly message: LiveMessage;
      readonly priority: LivePriority;
      /** The driver drops the message after this time, because it is useless to the receiver. */
      readonly expiresAt: Instant;
    }
  | { readonly kind: "close"; readonly connection: LiveConnectionId; readonly reason: string }
  /** More peer addresses are needed. */
  | { readonly kind: "find" }
  /** The next piece, verified and in order. `chunks` belong to the window and never change. Sequence
   * numbers that are left out without a `skip` were never made. */
  | {
      readonly kind: "piece";
      readonly header: SignedHeader;
      readonly chunks: readonly Uint8Array[];
      readonly completedAt: Instant;
    }
  /** Piece `seq` is given up. */
  | { readonly kind: "skip"; readonly seq: number; readonly missingChunks: number }
  /** A verified STAT that is newer than all before. */
  | { readonly kind: "stat"; readonly stat: StatMessage }
  /** The stream has moved to another key: its key was changed or revoked. */
  | { readonly kind: "moved"; readonly successor: Successor }
  | {
      readonly kind: "banned";
      readonly address: PeerAddress;
      readonly reason: string;
      readonly forMs: number;
    }
  /** The source signed two headers with one sequence number, or two that cannot follow each other: its key
   * was copied, or the source is broken. */
  | { readonly kind: "forked"; readonly seq: number; readonly header: PieceHeader };

/** Statistics of a live stream for `stat` and `livepos`. */
export interface LiveFigures {
  readonly peers: number;
  readonly parents: number;
  readonly children: number;
  /** The oldest and the newest available piece, and the next to be played; undefined before the first
   * header. */
  readonly firstSeq: number | undefined;
  readonly lastSeq: number | undefined;
  readonly firstTsMs: number | undefined;
  readonly lastTsMs: number | undefined;
  readonly positionSeq: number | undefined;
  /** Complete pieces from the position on, without a gap. */
  readonly bufferedPieces: number;
  readonly lagMs: number;
  readonly receivedBytes: number;
  readonly duplicateBytes: number;
  readonly skippedPieces: number;
  readonly hasEnded: boolean;
  /** Peers whose WIN shows that they are about to run out of media. */
  readonly starvingPeers?: number;
  /** The newest header that was verified or made here. */
  readonly newest?: PieceHeader | undefined;
  /** When the last message of any peer that has been connected for at least 1 s arrived; undefined if there
   * is no such peer. */
  readonly heardAt?: Instant | undefined;
}

/** A piece with all of its chunks, by stripe. */
export interface WholePiece {
  readonly header: SignedHeader;
  readonly chunks: readonly Uint8Array[];
}

/** Chunks of one piece that were fetched from the web. */
export interface FetchedChunks {
  readonly epoch: number;
  readonly seq: number;
  readonly chunks: readonly { readonly stripe: number; readonly bytes: Uint8Array }[];
}
