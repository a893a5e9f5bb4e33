import type { PeerAddress } from "../base/address.ts";
import type { Infohash, Sha1 } from "../base/ids.ts";
import type { Random } from "../base/random.ts";
import type { ByteRange } from "../base/range.ts";
import type { Budget } from "../base/rate-limit.ts";
import type { Sha256 } from "../base/signature.ts";
import type { PieceLayer } from "../wire/piece-layers.ts";
import type { AnnounceReply, AnnounceRequest, SwarmCounts } from "../wire/tracker.ts";

/** Names one connection within one swarm; never reused. The swarm numbers outgoing ones, the driver incoming ones
 * (outgoing are even, incoming are odd). */
export type ConnectionId = number;

/** Names one reader (one open byte range) within one swarm. */
export type ReaderId = number;

/** Who told us of a candidate. `dht` and `lsd` are seams: they arrive like any other. */
export type CandidateOrigin = "tracker" | "pex" | "magnet" | "incoming" | "dht" | "lsd";

/** How a peer came to us: who told of it, or `web` for a web server that has the content (BEP 17, 19). */
export type PeerOrigin = CandidateOrigin | "web";

/** An address we could connect to, and who told us of it first (or most credibly). */
export interface Candidate {
  readonly address: PeerAddress;
  readonly origin: CandidateOrigin;
}

/** The shape of content, all of it from a verified transport file. */
export interface SwarmLayout {
  readonly pieceLength: number;
  readonly pieceCount: number;
  /** Bytes in all; the last piece may be shorter. */
  readonly length: number;
  /** By piece, in order: 20 bytes, its SHA-1; in version 2 the 32 bytes of its Merkle root. */
  readonly pieceHashes: Uint8Array;
  /** Version 2 (BEP 52): the lengths of the pieces that are shorter than others, as the last of each file is. Absent in
   * version 1. */
  readonly shortPieces?: ReadonlyMap<number, number>;
  /** Version 2: the files of more than one piece, in the order of their pieces. */
  readonly layers?: readonly PieceLayer[];
  /** The hashes of those layers are not known yet: metadata does not bring them, and peers are asked. */
  readonly lacksLayers?: boolean;
  /** BEP 27: peers come from trackers only, never from PEX, DHT or LSD. */
  readonly isPrivate: boolean;
}

/** What the swarm is given when it is made. */
export interface SwarmSetup {
  readonly infohash: Infohash;
  readonly peerId: Uint8Array;
  /** Absent for a magnet: the swarm then fetches the metadata first (BEP 9) and goes on by itself. */
  readonly info?: { readonly layout: SwarmLayout; readonly infoBytes: Uint8Array };
  /** Turns metadata whose hash fits the infohash into a layout; throws `DecodeError` where it is hostile. A layout that lacks
   * layers is the swarm's own: it writes their hashes into it. */
  readonly readInfo: (infoBytes: Uint8Array) => SwarmLayout;
  /** Pieces that the store holds already, verified. */
  readonly held?: Iterable<number>;
  /** Announce URLs by tier (BEP 12). */
  readonly trackers: readonly (readonly string[])[];
  /** The port that others reach us at (announces, extension handshake). */
  readonly listenPort: number;
  /** Whether uTP is spoken, over which peers that cannot be called are met halfway (BEP 55). */
  readonly punches?: boolean;
  /** Where our node of the DHT is asked (BEP 5); absent where there is none. */
  readonly dhtPort?: number;
  readonly sha1: Sha1;
  readonly sha256: Sha256;
  readonly random: Random;
  readonly limits: SwarmLimits;
  readonly buffers: PieceBuffers;
}

/** What a swarm may send and ask for. */
export interface SwarmLimits {
  readonly upload: Budget;
  readonly download: Budget;
  /** Whether the limits do not hold for peers at this address. */
  isExempt(host: string): boolean;
}

/** Where piece buffers come from and go back to, so that memory is bounded in one place. */
export interface PieceBuffers {
  /** A buffer of exactly `length` bytes (contents undefined), or undefined while the memory budget is spent. */
  take(length: number): Uint8Array<ArrayBuffer> | undefined;
  /** Takes back a buffer that nobody refers to any more. */
  give(buffer: Uint8Array<ArrayBuffer>): void;
}

/** What happens to a swarm. */
export type SwarmInput =
  | { readonly kind: "found"; readonly addresses: readonly PeerAddress[]; readonly origin: CandidateOrigin }
  | { readonly kind: "opened"; readonly connection: ConnectionId }
  /** An incoming connection whose handshake (68 bytes, this infohash) the driver has read already and passes on as
   * the first `received`. */
  | {
      readonly kind: "accepted";
      readonly connection: ConnectionId;
      readonly address: PeerAddress;
      /** A web server speaks here, through us, under this name: it is no peer to tell others of, and its address stands
       * for nothing but itself. */
      readonly webSeed?: string;
    }
  /** The connection failed to open, or ended. */
  | { readonly kind: "closed"; readonly connection: ConnectionId; readonly reason: string }
  /** `bytes` is a view that is valid only during the call: block payloads are copied once, to their place. */
  | { readonly kind: "received"; readonly connection: ConnectionId; readonly bytes: Uint8Array }
  /** Everything sent on the connection so far has gone to the kernel. */
  | { readonly kind: "drained"; readonly connection: ConnectionId }
  /** A reader stands at `range.start` and will consume up to `range.end` (bytes of the whole content).
   * Sent again each time it moves on. `urgentBytes`: that many bytes from the start are needed as soon as can be. */
  | {
      readonly kind: "want";
      readonly reader: ReaderId;
      readonly range: ByteRange;
      readonly urgentBytes: number;
    }
  | { readonly kind: "unwant"; readonly reader: ReaderId }
  /** The store no longer holds this piece. */
  | { readonly kind: "dropped"; readonly piece: number }
  /** The answer to a `read`; undefined where the store could not. The swarm owns `bytes` from now on. */
  | {
      readonly kind: "block";
      readonly connection: ConnectionId;
      readonly piece: number;
      readonly begin: number;
      readonly bytes: Uint8Array | undefined;
      readonly isForHashes?: boolean;
    }
  /** More announce URLs by tier, from another link to the same content. */
  | { readonly kind: "trackers"; readonly tiers: readonly (readonly string[])[] }
  /** The metadata came from elsewhere (a transport file, given later) while peers are still asked for it. Of no
   * consequence where it is known already, or does not fit the infohash. `layout` is that of the file: in version 2 it
   * says more than the metadata does. */
  | { readonly kind: "info"; readonly infoBytes: Uint8Array; readonly layout?: SwarmLayout }
  | { readonly kind: "announced"; readonly url: string; readonly reply: AnnounceReply }
  /** The answer to a `scrape`; there is none where the tracker does not know. */
  | { readonly kind: "scraped"; readonly url: string; readonly counts: SwarmCounts }
  /** Memory for piece buffers became free again after `take` had none. */
  | { readonly kind: "buffers" }
  /** Nobody uses this content any more: say goodbye to trackers and close all connections. */
  | { readonly kind: "stop" };

/** What a swarm asks of the driver. */
export type SwarmOutput =
  | {
      readonly kind: "connect";
      readonly connection: ConnectionId;
      readonly address: PeerAddress;
      /** Over uTP alone: it calls us at the same moment (BEP 55). */
      readonly isPunch?: boolean;
    }
  /** The driver owns `bytes` from now on. */
  | { readonly kind: "send"; readonly connection: ConnectionId; readonly bytes: Uint8Array }
  | { readonly kind: "close"; readonly connection: ConnectionId; readonly reason: string }
  /** The metadata fits the infohash and is of no use: nothing more comes of this swarm, which has stopped. `peers` are
   * those it knew, the best first, for who can make more of it. */
  | { readonly kind: "failed"; readonly reason: string; readonly peers: readonly Candidate[] }
  /** The metadata says that the content is private, while its piece layers are still asked for (BEP 27). */
  | { readonly kind: "private" }
  /** The metadata has arrived and fits the infohash; in version 2 the piece layers, too. */
  | { readonly kind: "metadata"; readonly infoBytes: Uint8Array; readonly layout: SwarmLayout }
  /** A verified piece; the driver owns `bytes` (a buffer of `buffers`) from now on. */
  | { readonly kind: "piece"; readonly piece: number; readonly bytes: Uint8Array<ArrayBuffer> }
  /** A peer may have this block (`isForHashes`: the hashes of it, which the answer is to say, too): read it from the store and
   * answer with `block`. */
  | {
      readonly kind: "read";
      readonly connection: ConnectionId;
      readonly piece: number;
      readonly begin: number;
      readonly length: number;
      readonly isForHashes?: boolean;
    }
  | { readonly kind: "announce"; readonly announce: AnnounceRequest }
  /** How large is the swarm? For figures only: whoever cannot find out lets it be. */
  | { readonly kind: "scrape"; readonly url: string }
  /** A peer says that it has a node of the DHT there (BEP 5). Not of private content. */
  | { readonly kind: "node"; readonly address: PeerAddress }
  /** For the log: this address sent bytes that break the format or failed verification. */
  | { readonly kind: "banned"; readonly address: PeerAddress; readonly reason: string };

/** What `stat` and the page show. Rates in bytes a second. */
export interface SwarmFigures {
  /** Web servers count, too. */
  readonly connectedPeers: number;
  /** How many of them are web servers. */
  readonly webSeeds: number;
  /** Why one of them failed last; undefined where none has. */
  readonly webSeedProblem: string | undefined;
  readonly knownCandidates: number;
  readonly unchokedByPeers: number;
  readonly seeds: number;
  readonly bytesPerSecondDown: number;
  readonly bytesPerSecondUp: number;
  readonly downloaded: number;
  readonly uploaded: number;
  /** Bytes thrown away: failed verification, or received twice. */
  readonly wasted: number;
  readonly piecesHeld: number;
  readonly pieceCount: number;
  /** In version 2 with the piece layers. */
  readonly hasMetadata: boolean;
  /** The metadata is here, the piece layers are not: peers are asked for them. */
  readonly lacksLayers: boolean;
  /** Of the pieces that readers need next: how many are not here, and how many of those no connected peer has. */
  readonly needed: number;
  readonly nowhere: number;
  /** A piece could not be begun for want of memory. */
  readonly isOutOfMemory: boolean;
  /** Our own limit on downloads, in bytes a second, where it holds this swarm back; 0 where it does not. */
  readonly heldToBytesPerSecond: number;
  readonly bannedPeers: number;
  /** What trackers claim; they need not be right. */
  readonly trackers: TrackerFigures;
  /** Peers we are connected to, for the page. */
  readonly peers: readonly PeerFigures[];
}

/** What the trackers of one content say. */
export interface TrackerFigures {
  /** Announce URLs we have. */
  readonly known: number;
  /** Trackers that have answered at least once. */
  readonly answered: number;
  /** Trackers whose last announce failed. */
  readonly failing: number;
  /** Why one of them failed last. */
  readonly problem: string | undefined;
  /** The largest claim of any tracker; undefined where none says. */
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
  /** Letters as libtorrent shows them: `d` we download, `u` they do, `i` incoming, `s` snubbed … */
  readonly flags: string;
}
