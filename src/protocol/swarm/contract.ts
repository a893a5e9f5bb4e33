import type { PeerAddress } from "../../base/address.ts";
import type { Infohash, Sha1 } from "../../base/ids.ts";
import type { Random } from "../../base/random.ts";
import type { ByteRange } from "../../base/range.ts";
import type { Budget } from "../../base/rate-limit.ts";
import type { Sha256 } from "../../base/signature.ts";
import type { PieceLayer } from "../../wire/torrent/piece-layers.ts";
import type { AnnounceReply, AnnounceRequest, SwarmCounts } from "../../wire/tracker/announce.ts";

/** Identifies one connection within one swarm; never reused. The swarm assigns even numbers to outgoing connections, the
 * driver odd numbers to incoming ones. */
export type ConnectionId = number;

/** Identifies one reader (one open byte range) within one swarm. */
export type ReaderId = number;

/** The source that reported a candidate. */
export type CandidateOrigin = "tracker" | "pex" | "magnet" | "incoming" | "dht" | "lsd";

/** How a peer became known: the source of its address, `web` for a web server with the content (BEP 17, 19),
 * `webrtc` for a browser or engine that a tracker introduced. */
export type PeerOrigin = CandidateOrigin | "web" | "webrtc";

/** An address to connect to, and the most credible source that reported it. */
export interface Candidate {
  readonly address: PeerAddress;
  readonly origin: CandidateOrigin;
}

/** Piece layout of content, read from a verified transport file. */
export interface SwarmLayout {
  readonly pieceLength: number;
  readonly pieceCount: number;
  /** Bytes of the content; the last piece may be shorter. */
  readonly length: number;
  /** Hashes in piece order: 20-byte SHA-1 each; in version 2 the 32-byte Merkle root of each piece. */
  readonly pieceHashes: Uint8Array;
  /** Version 2 (BEP 52): lengths of the pieces shorter than `pieceLength`, such as the last piece of each file. Absent in
   * version 1. */
  readonly shortPieces?: ReadonlyMap<number, number>;
  /** Version 2: the files of more than one piece, in piece order. */
  readonly layers?: readonly PieceLayer[];
  /** The hashes of `layers` are still unknown: metadata does not contain them, so the swarm requests them from peers. */
  readonly lacksLayers?: boolean;
  /** BEP 27: take peers from trackers only, never from PEX, DHT or LSD. */
  readonly isPrivate: boolean;
}

/** Options and dependencies of a swarm. */
export interface SwarmSetup {
  readonly infohash: Infohash;
  readonly peerId: Uint8Array;
  /** Absent for a magnet: the swarm then fetches the metadata first (BEP 9). */
  readonly info?: { readonly layout: SwarmLayout; readonly infoBytes: Uint8Array };
  /** Decodes metadata that matches the infohash; throws `DecodeError` if it is invalid. If the layout lacks layers, the swarm
   * owns it and writes the missing hashes into `pieceHashes`. */
  readonly readInfo: (infoBytes: Uint8Array) => SwarmLayout;
  /** Verified pieces that the store already holds. */
  readonly held?: Iterable<number>;
  /** Announce URLs by tier (BEP 12). */
  readonly trackers: readonly (readonly string[])[];
  /** The port on which peers reach this engine (announces, extension handshake). */
  readonly listenPort: number;
  /** uTP is available, so the swarm may use hole punching (BEP 55). */
  readonly allowsHolePunching?: boolean;
  /** The port of the engine's own DHT node (BEP 5); absent without a DHT. */
  readonly dhtPort?: number;
  readonly sha1: Sha1;
  readonly sha256: Sha256;
  readonly random: Random;
  readonly limits: SwarmLimits;
  readonly buffers: PieceBuffers;
}

/** Rate limits of a swarm. */
export interface SwarmLimits {
  readonly upload: Budget;
  readonly download: Budget;
  /** Whether the peer at this address is exempt from the limits. */
  isExempt(host: string): boolean;
}

/** Allocator of piece buffers; bounds the memory of all swarms. */
export interface PieceBuffers {
  /** Returns a buffer of exactly `length` bytes (contents undefined), or undefined if the memory budget is exhausted. */
  take(length: number): Uint8Array<ArrayBuffer> | undefined;
  /** Returns a buffer to the pool. The caller keeps no reference to it. */
  give(buffer: Uint8Array<ArrayBuffer>): void;
}

/** Events that a driver passes to a swarm. */
export type SwarmInput =
  | { readonly kind: "found"; readonly addresses: readonly PeerAddress[]; readonly origin: CandidateOrigin }
  | { readonly kind: "opened"; readonly connection: ConnectionId }
  /** An incoming connection. The driver has already read the handshake (68 bytes, this infohash) and passes it on as
   * the first `received`. */
  | {
      readonly kind: "accepted";
      readonly connection: ConnectionId;
      readonly address: PeerAddress;
      /** The connection stands for a web server of this name: it is never announced to peers, and its address reveals nothing
       * about other connections. */
      readonly webSeed?: string;
      /** The connection is a WebRTC data channel. */
      readonly isWebRtc?: boolean;
      /** This engine opened the connection, so it sends the first handshake. */
      readonly opensFirst?: boolean;
    }
  /** The connection could not be opened, or ended. */
  | { readonly kind: "closed"; readonly connection: ConnectionId; readonly reason: string }
  /** `bytes` is valid only during the call: each block is copied once, to its place in the piece buffer. */
  | { readonly kind: "received"; readonly connection: ConnectionId; readonly bytes: Uint8Array }
  /** The kernel has taken everything sent on the connection so far. */
  | { readonly kind: "drained"; readonly connection: ConnectionId }
  /** A reader is at `range.start` and will consume up to `range.end` (bytes of the content). Sent again when it moves.
   * The first `urgentBytes` are needed as soon as possible. */
  | {
      readonly kind: "want";
      readonly reader: ReaderId;
      readonly range: ByteRange;
      readonly urgentBytes: number;
    }
  | { readonly kind: "unwant"; readonly reader: ReaderId }
  /** The store no longer holds this piece. */
  | { readonly kind: "dropped"; readonly piece: number }
  /** The answer to a `read`; undefined if the store could not read the block. The swarm owns `bytes` from now on. */
  | {
      readonly kind: "block";
      readonly connection: ConnectionId;
      readonly piece: number;
      readonly begin: number;
      readonly bytes: Uint8Array | undefined;
      readonly isForHashes?: boolean;
    }
  /** Further announce URLs by tier, from another link to the same content. */
  | { readonly kind: "trackers"; readonly tiers: readonly (readonly string[])[] }
  /** Metadata from another source (a transport file) while peers are still asked for it. Ignored if the metadata is known
   * or does not match the infohash. `layout` is that of the file, which in version 2 has the piece layers that metadata
   * lacks. */
  | { readonly kind: "info"; readonly infoBytes: Uint8Array; readonly layout?: SwarmLayout }
  | { readonly kind: "announced"; readonly url: string; readonly reply: AnnounceReply }
  /** The answer to a `scrape`; absent if the tracker does not know the counts. */
  | { readonly kind: "scraped"; readonly url: string; readonly counts: SwarmCounts }
  /** Memory for piece buffers is available again after `take` returned undefined. */
  | { readonly kind: "buffers" }
  /** The content is no longer used: announce `stopped` to trackers and close all connections. */
  | { readonly kind: "stop" };

/** Requests of a swarm to its driver. */
export type SwarmOutput =
  | {
      readonly kind: "connect";
      readonly connection: ConnectionId;
      readonly address: PeerAddress;
      /** Connect over uTP only: the peer connects to this engine at the same time (BEP 55). */
      readonly isPunch?: boolean;
    }
  /** The driver owns `bytes` from now on. */
  | { readonly kind: "send"; readonly connection: ConnectionId; readonly bytes: Uint8Array }
  | { readonly kind: "close"; readonly connection: ConnectionId; readonly reason: string }
  /** The metadata matches the infohash but is unusable; the swarm has stopped. `peers` are the peers it knew, best first,
   * for a caller that can interpret the metadata in another way. */
  | { readonly kind: "failed"; readonly reason: string; readonly peers: readonly Candidate[] }
  /** The content is private according to its metadata (BEP 27); its piece layers are still being fetched. */
  | { readonly kind: "private" }
  /** The metadata is known and matches the infohash; in version 2 the piece layers are known, too. */
  | { readonly kind: "metadata"; readonly infoBytes: Uint8Array; readonly layout: SwarmLayout }
  /** A verified piece; the driver owns `bytes` (a buffer of `buffers`) from now on. */
  | { readonly kind: "piece"; readonly piece: number; readonly bytes: Uint8Array<ArrayBuffer> }
  /** Read this block from the store and answer with `block`. With `isForHashes` the block is hashed for a hash request
   * instead of being sent. */
  | {
      readonly kind: "read";
      readonly connection: ConnectionId;
      readonly piece: number;
      readonly begin: number;
      readonly length: number;
      readonly isForHashes?: boolean;
    }
  | { readonly kind: "announce"; readonly announce: AnnounceRequest }
  /** Ask the tracker for the size of the swarm, for statistics only; a driver that cannot ask ignores it. */
  | { readonly kind: "scrape"; readonly url: string }
  /** A peer reported its DHT node (BEP 5). Never emitted for private content. */
  | { readonly kind: "node"; readonly address: PeerAddress }
  /** For the log: this address sent malformed bytes or data that failed verification. */
  | { readonly kind: "banned"; readonly address: PeerAddress; readonly reason: string };

/** Statistics of a swarm. Rates in bytes a second. */
export interface SwarmFigures {
  /** Includes web servers. */
  readonly connectedPeers: number;
  /** How many of the connected peers are web servers. */
  readonly webSeeds: number;
  /** Why a web server failed most recently; undefined if none did. */
  readonly webSeedProblem: string | undefined;
  readonly knownCandidates: number;
  readonly unchokedByPeers: number;
  readonly seeds: number;
  readonly bytesPerSecondDown: number;
  readonly bytesPerSecondUp: number;
  readonly downloaded: number;
  readonly uploaded: number;
  /** Bytes discarded: failed verification, or received twice. */
  readonly wasted: number;
  readonly piecesHeld: number;
  readonly pieceCount: number;
  /** In version 2 the piece layers are known, too. */
  readonly hasMetadata: boolean;
  /** The metadata is known, but the piece layers are still being fetched from peers. */
  readonly lacksLayers: boolean;
  /** Missing pieces that readers need next, and how many of them no connected peer has. */
  readonly needed: number;
  readonly nowhere: number;
  /** A piece could not be started because memory is exhausted. */
  readonly isOutOfMemory: boolean;
  /** The download limit in bytes a second if it holds this swarm back, else 0. */
  readonly limitedToBytesPerSecond: number;
  readonly bannedPeers: number;
  /** Unverified counts reported by trackers. */
  readonly trackers: TrackerFigures;
  /** The connected peers. */
  readonly peers: readonly PeerFigures[];
}

/** Tracker statistics of one content. */
export interface TrackerFigures {
  /** Announce URLs. */
  readonly known: number;
  /** Trackers that have answered at least once. */
  readonly answered: number;
  /** Trackers whose last announce failed. */
  readonly failing: number;
  /** Why a tracker failed most recently. */
  readonly problem: string | undefined;
  /** The largest count that any tracker reports; undefined if none does. */
  readonly seeds: number | undefined;
  readonly leechers: number | undefined;
}

export interface PeerFigures {
  readonly address: PeerAddress;
  readonly origin: PeerOrigin;
  readonly client: string;
  readonly bytesPerSecondDown: number;
  readonly bytesPerSecondUp: number;
  readonly progress: number;
  /** Flags as libtorrent shows them: `d` downloading, `u` uploading, `i` incoming, `s` snubbed … */
  readonly flags: string;
}
