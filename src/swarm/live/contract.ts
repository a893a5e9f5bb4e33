import type { PeerAddress } from "../../base/address.ts";
import type { Random } from "../../base/random.ts";
import type { Instant } from "../../base/time.ts";
import type { PieceHeader } from "../../wire/live-header.ts";
import type { StatMessage } from "../../wire/live-stat.ts";
import type { FetchedChunks } from "./fetched.ts";
import type { LiveAbout, LiveWord, SignedHeader, SignedStat } from "./messages.ts";

/** Names one connection; never reused. The machine numbers outgoing ones (even), the driver incoming ones (odd). */
export type LiveConnectionId = number;

/** The shape of a live stream, from its transport file. */
export interface LiveLayout {
  /** 4, 8 or 16: chunks of a piece. */
  readonly stripes: number;
  readonly pieceMs: number;
  readonly bytesPerSecond: number;
  readonly maxPieceBytes: number;
}

/** The rules that a run in the simulation can take out, to show what each is for (design/live.md). */
export interface LiveRules {
  /** How far behind the newest piece a newcomer may be served from. */
  readonly backfillMs: number;
  /** Late chunks go on at repair priority, to those who lack them. */
  readonly yieldsLate: boolean;
  /** What is late is asked of others. */
  readonly pulls: boolean;
  /** The part of the upload that subscriptions may use. */
  readonly headroom: number;
  /** A parent that never begins is left at once, and not asked again soon. */
  readonly watchesFirstChunk: boolean;
}

/** What a live swarm is given when it is made. */
export interface LiveSetup {
  readonly about: LiveAbout;
  readonly layout: LiveLayout;
  /** Media is skipped rather than later than this behind the fastest arrival seen. */
  readonly lagMs: number;
  /** How long pieces are kept for others. */
  readonly keepMs: number;
  readonly rules: LiveRules;
  readonly random: Random;
  /** Our own clock's UNIX time at `now`: it only tells what comes from the far future. */
  readonly unixMs: (now: Instant) => number;
  /** Checks the signature; false convicts the sender. */
  readonly isSigned: (header: SignedHeader) => boolean;
  /** Checks a chunk against the hash in its header. */
  readonly fits: (header: SignedHeader, stripe: number, bytes: Uint8Array) => boolean;
  /** The 20 bytes by which a header names the one before it. */
  readonly hash: (header: Uint8Array) => Uint8Array;
  /** Checks the signature of a STAT; false convicts the sender. */
  readonly isSignedStat: (stat: SignedStat) => boolean;
  /** Whether the source lists a relay at this address; others that call themselves relays count as viewers. Where it is
   * absent, all are believed. */
  readonly isRelay?: (address: PeerAddress) => boolean;
  /** As the source: another may have begun in the same moment, with the same key and epoch. */
  readonly mayHaveTwin?: boolean;
  /** Whom a private source talks to; everybody where absent. */
  readonly isAllowed?: (address: PeerAddress) => boolean;
}

/** What happens to a live swarm. */
export type LiveInput =
  | { readonly kind: "found"; readonly addresses: readonly PeerAddress[] }
  /** The handshakes are done on a connection that we asked for. */
  | {
      readonly kind: "opened";
      readonly connection: LiveConnectionId;
      readonly about: LiveAbout;
      readonly rttMs: number;
    }
  /** Somebody called us and the handshakes are done. */
  | {
      readonly kind: "accepted";
      readonly connection: LiveConnectionId;
      readonly about: LiveAbout;
      readonly rttMs: number;
      readonly address: PeerAddress;
      /** Others can call this address. */
      readonly isReachable: boolean;
    }
  | { readonly kind: "closed"; readonly connection: LiveConnectionId }
  | { readonly kind: "message"; readonly connection: LiveConnectionId; readonly message: LiveWord }
  /** So long the oldest live byte for this peer has waited for the network. */
  | { readonly kind: "backlog"; readonly connection: LiveConnectionId; readonly waitMs: number }
  /** A source has made a piece. */
  | { readonly kind: "produced"; readonly header: SignedHeader; readonly chunks: readonly Uint8Array[] }
  /** Chunks were found on the web. */
  | { readonly kind: "fetched"; readonly found: FetchedChunks }
  /** A source has something to tell besides its pieces. */
  | { readonly kind: "stat"; readonly stat: SignedStat }
  | { readonly kind: "stop" };

/** In which order the driver sends: all of a lower class before any of a higher one. */
export const PRIORITY = { control: 0, live: 1, repair: 2, backfill: 3 } as const;
export type LivePriority = (typeof PRIORITY)[keyof typeof PRIORITY];

/** What a live swarm asks of the driver. */
export type LiveOutput =
  | { readonly kind: "connect"; readonly connection: LiveConnectionId; readonly address: PeerAddress }
  | {
      readonly kind: "send";
      readonly connection: LiveConnectionId;
      readonly message: LiveWord;
      readonly priority: LivePriority;
      /** Of no use to the receiver after this: thrown away rather than sent. */
      readonly expiresAt: Instant;
    }
  | { readonly kind: "close"; readonly connection: LiveConnectionId; readonly reason: string }
  /** More addresses are wanted. */
  | { readonly kind: "find" }
  /** The next piece, verified and in order. `chunks` stay the window's and are never changed. Numbers that are left out
   * without a `skip` were never made. */
  | {
      readonly kind: "piece";
      readonly header: SignedHeader;
      readonly chunks: readonly Uint8Array[];
      readonly completedAt: Instant;
    }
  /** Piece `seq` is not waited for any longer. */
  | { readonly kind: "skip"; readonly seq: number; readonly missingChunks: number }
  /** The source tells something besides its pieces: newer than all before, and verified. */
  | { readonly kind: "stat"; readonly stat: StatMessage }
  | { readonly kind: "banned"; readonly address: PeerAddress; readonly reason: string }
  /** The source signed two headers of one number, or two that cannot follow each other: its key is in other hands, or it
   * is broken. */
  | { readonly kind: "forked"; readonly seq: number; readonly header: PieceHeader };

/** What `stat` and `livepos` show of a live stream. */
export interface LiveFigures {
  readonly peers: number;
  readonly parents: number;
  readonly children: number;
  /** Oldest and newest piece that can be had, and the next to be played; undefined before the first header. */
  readonly firstSeq: number | undefined;
  readonly lastSeq: number | undefined;
  readonly firstTsMs: number | undefined;
  readonly lastTsMs: number | undefined;
  readonly positionSeq: number | undefined;
  /** Whole pieces that follow the position without a gap. */
  readonly bufferedPieces: number;
  readonly lagMs: number;
  readonly receivedBytes: number;
  readonly duplicateBytes: number;
  readonly skippedPieces: number;
  readonly hasEnded: boolean;
  /** Peers that say to be so late that they may soon have nothing to play. */
  readonly starvingPeers?: number;
  /** The newest header that is verified, or made here. */
  readonly newest?: PieceHeader | undefined;
  /** When one of the peers that have been here for a while said something last; undefined where there is none. */
  readonly heardAt?: Instant | undefined;
}
