import type { PeerAddress } from "../base/address.ts";
import type { ByteReader, RandomAccess, ReadOptions } from "../base/byte-source.ts";
import type { DiagnosisRow } from "../base/diagnosis.ts";
import type { ContentId, FileHash, Infohash } from "../base/ids.ts";
import type { ItemName } from "../base/item-name.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import type { ByteRange } from "../base/range.ts";
import type { Instant } from "../base/time.ts";
import type { Announcer } from "../net/announcer.ts";
import type { Dht, NetSettings, PeerFinder, TrackerServer } from "../net/contract.ts";
import type { PeerLimits } from "../net/peer-limits.ts";
import type { Bucket, BucketPlace } from "../outbound/bucket.ts";
import type { Outbound } from "../outbound/outbound.ts";
import type { LiveFigures } from "../protocol/live/contract.ts";
import type { SignedHeader, SignedStat } from "../protocol/live/messages.ts";
import type { CandidateOrigin, SwarmFigures, SwarmSetup } from "../protocol/swarm/contract.ts";
import type { AudioRequest, Media, OpenMedia } from "../remux/contract.ts";
import type { Runtime, TcpHandlers, TcpSocket } from "../runtime/contract.ts";
import type { CacheContents } from "../storage/cache-contract.ts";
import type { DiskCache } from "../storage/disk-cache.ts";
import type { KnownFile } from "../storage/known-file.ts";
import type { PieceBufferPool } from "../storage/piece-buffers.ts";
import type { PieceMemory } from "../storage/piece-memory.ts";
import type { TransportFiles } from "../storage/transport-files.ts";
import type { PieceHeader } from "../wire/live/header.ts";
import type { LiveRole } from "../wire/live/peer-info.ts";
import type { RoleKey } from "../wire/live/role-proof.ts";
import type { Successor } from "../wire/live/successor.ts";
import type { LiveVariant } from "../wire/live/variants.ts";
import type { TransportFile } from "../wire/torrent/metainfo.ts";
import type { WebSeed } from "../wire/torrent/web-seeds.ts";
import type { ChannelWatch, WindowStorage } from "./channel-contract.ts";
import type { ConnectionCount } from "./connection-count.ts";
import type { DrivenSwarm } from "./driver.ts";
import type { LiveContent } from "./live-content.ts";
import type { PieceSegments, UploadAllowance } from "./piece-segments.ts";
import type { SegmentSource, SourceOptions } from "./segment-source.ts";
import type { ServerSlots } from "./web-seeds/server-slots.ts";

/** The bytes of one file of a transfer: {@link RandomAccess}, and as a stream driven by the pulls of its reader. */
export interface ByteSource extends RandomAccess {
  /** Streams `range` in order. Each pull requests more; canceling the stream ends the reader and its wants. */
  open(range: ByteRange, options?: ReadOptions): ReadableStream<Uint8Array>;
  /** Reads `range` into buffers of the caller. */
  reader(range: ByteRange, options?: ReadOptions): ByteReader;
}

/** One file of a transport file, as players see it. */
export interface ContentFile {
  readonly index: number;
  /** Path within the content, joined with `/`. Display text only, never a path on our disk. */
  readonly name: string;
  /** Bytes. */
  readonly size: number;
  /** Position of its first byte in the whole content. */
  readonly offset: number;
  readonly mime: string;
  readonly isPlayable: boolean;
}

/** How a player names content. */
export type ContentSelector =
  | { readonly kind: "content_id"; readonly contentId: ContentId }
  | { readonly kind: "infohash"; readonly infohash: Infohash }
  | {
      readonly kind: "url";
      readonly url: string;
      /** See {@link WebContent.headers}. */
      readonly headers?: Readonly<Record<string, string>> | undefined;
    }
  /** `isOwn`: the link is from the user's own playlist, so any client may use its peers at private addresses. */
  | { readonly kind: "magnet"; readonly magnet: string; readonly isOwn?: boolean }
  | { readonly kind: "transport_file"; readonly bytes: Uint8Array };

/** Content that is being fetched: one for each infohash, shared by all players. */
export interface Transfer {
  readonly infohash: Infohash;
  readonly name: string;
  readonly files: readonly ContentFile[];
  readonly figures: SwarmFigures;
  /** Returns the bytes of a file. Throws `no_such_file`. */
  source(fileIndex: number): ByteSource;
  /** Opens the media of a file, shared by all callers. Rejects with `SluiceError`. */
  media(fileIndex: number, audio: AudioRequest, signal?: AbortSignal): Promise<Media>;
  /** Verified share of the file, 0 to 100. */
  progress(fileIndex: number): number;
  /** Number of verified bytes at the head of the file, up to the first gap. */
  headBytes(fileIndex: number): number;
  /** Returns how much of the content is held, in at most `cells` equal parts, each as a digit from 0 to 9. */
  pieceMap?(cells: number): string;
  /** How the content is fetched; `bt` by default. */
  readonly transportType?: "bt" | "hls" | "wrapper";
  /** The live swarm; undefined for other content. */
  readonly live?: LiveControl | undefined;
  /** True if the connection to its only server was lost and cannot be made again. */
  readonly isUnreachable?: boolean;
  /** The sources of a channel; undefined for other content. */
  readonly channel?: ChannelWatch | undefined;
  /** Opens content that consists of segments instead of a file, shared by all callers with the same options; replaces `media`. */
  readonly segmentSource?:
    | ((signal: AbortSignal, options: SourceOptions) => Promise<SegmentSource>)
    | undefined;
}

/** What is known about content when it is opened. */
export interface TransferContent {
  readonly infohash: Infohash;
  /** Absent for a magnet or an infohash: peers are asked for the metadata. */
  readonly transportFile?: TransportFile;
  /** Announce URLs by tier, in addition to those of the transport file. */
  readonly trackers: readonly (readonly string[])[];
  /** Announce URLs, also of the transport file, that may lead to loopback and private addresses. */
  readonly localTrackers?: readonly string[];
  /** Web seeds (BEP 17, 19), in addition to those of the transport file. */
  readonly webSeeds?: readonly WebSeed[];
  /** URLs of web seeds, also of the transport file, that may lead to loopback and private addresses. */
  readonly localWebSeeds?: readonly string[];
  /** Peers that the link names (`x.pe`). */
  readonly peers: readonly PeerAddress[];
  /** The path of its only file, if that is complete on this machine outside the cache; nothing is fetched then. */
  readonly ownFile?: string;
  /** The `dn` of a magnet: shown until the metadata is known. */
  readonly displayName?: string;
  /** For content of a web server, which has no swarm. */
  readonly web?: WebContent;
  /** For content that is known to be a live stream. A magnet may turn out to be one later. */
  readonly live?: LiveContent;
  /** Our role if the content turns out to be a live stream; viewer by default. */
  readonly liveRole?: LiveRole;
  /** Proves that role to peers. */
  readonly roleKey?: RoleKey;
  /** See {@link ActiveTransfer.fetchHistory}. */
  readonly wantsHistory?: boolean;
}

/** A transfer as the engine controls it; players use only {@link Transfer}. */
export interface ActiveTransfer extends Transfer {
  /** Resolves when the files are known; rejects when the signal fires or the transfer ends. */
  ready(signal?: AbortSignal): Promise<void>;
  /** Adds trackers; `localTrackers` may lead to loopback and private addresses. */
  addTrackers(tiers: readonly (readonly string[])[], localTrackers?: readonly string[]): void;
  addPeers(addresses: readonly PeerAddress[], origin: CandidateOrigin): void;
  /** Returns the transport file if it is known. For a live stream see `live`. */
  transportFile(): TransportFile | undefined;
  /** Called for viewers that have watched a live stream on another engine: playback begins some segments before the edge. */
  fetchHistory?(): void;
  /** Sets whether the transfer has no player. Idle live streams receive nothing; in every limit, idle transfers come last. */
  setIdle?(isIdle: boolean): void;
  /** Announces `stopped` to trackers, closes connections, keeps the cache. Readers fail with `session_stopped`. */
  stop(): Promise<void>;
}

/** All transfers of the engine, one for each infohash. */
export interface Transfers {
  /** Returns the transfer of this content; creates it if necessary. */
  open(content: TransferContent): ActiveTransfer;
  get(infohash: Infohash): ActiveTransfer | undefined;
  /** Takes over a connection that did not come through the P2P port; the peer sends its handshake first. Closes it if the content is not open. */
  accept(infohash: Infohash, socket: TcpSocket): TcpHandlers;
  all(): readonly ActiveTransfer[];
  /** Returns the stored transport file of content that was opened before. */
  knownTransportFile(infohash: Infohash): Promise<KnownFile | undefined>;
  /** Returns the infohash of the stored transport file with this SHA-1. */
  infohashOfFile(hash: FileHash): Promise<Infohash | undefined>;
  /** Looks up the current infohash of a mutable torrent in the DHT (BEP 46). Rejects with `content_id_unknown` if it is not found
   * within seconds or the DHT is off, with `too_many`, or with the reason of the signal. */
  findByKey(name: ItemName, signal?: AbortSignal): Promise<Infohash>;
  /** Stores a transport file permanently; durable when it resolves. Rejects with `too_many` or `disk_full`. */
  keep(known: KnownFile): Promise<void>;
  /** Infohashes of the stored transport files, the newest first. */
  keptInfohashes(): readonly Infohash[];
  readonly p2pPort: number;
  /** The tracker of this engine; undefined if it is off. */
  readonly tracker: TrackerServer | undefined;
  cacheFigures(): Promise<CacheFigures>;
  /** The disk cache; undefined if it is off. */
  readonly cache: CacheContents | undefined;
  /** The limits of single transfers, which need not be open. */
  readonly limits: Pick<PeerLimits, "limitSwarm" | "limitsOf">;
  /** Returns a new place for the media of a live stream that has no transfer here. */
  windowStorage(): WindowStorage;
  /** Applies the present rate limits and the present size of the cache. */
  settingsChanged(): void;
  /** Returns the rows of the diagnosis about the network. */
  reachRows(): Promise<readonly DiagnosisRow[]>;
  /** Stops all transfers and the P2P listener; resolves when all records are durable. */
  close(): Promise<void>;
}

/** Sizes of the cache in bytes. */
export interface CacheFigures {
  /** Free space on the disk of the cache. */
  readonly available: number;
  readonly limit: number;
  /** Used by open transfers, and by other content. */
  readonly activeInUse: number;
  readonly inactiveInUse: number;
  /** Size of the piece buffers in memory. */
  readonly memoryInUse: number;
}

/** All settings of the engine. `src/settings/config.ts` fills them from flags, variables, the file and defaults. */
export interface EngineSettings extends NetSettings {
  readonly cacheLimitBytes: number;
  /** The bucket that is the second level of the cache. */
  readonly bucket?: BucketPlace | undefined;
  readonly memoryLimitBytes: number;
  /** Limit of concurrent sessions. */
  readonly maxSessions: number;
  readonly maxTransfers: number;
  /** A session ends after this time without requests. */
  readonly sessionIdleMs: number;
  /** A transfer without sessions continues for this time, to seed and for players that return. */
  readonly transferIdleMs: number;
  /** How long a start waits for the first peer, then for metadata, then for data. */
  readonly peersTimeoutMs: number;
  readonly metadataTimeoutMs: number;
  readonly startTimeoutMs: number;
  readonly maxConnections: number;
  readonly segmentSeconds: number;
  /** Announce URLs for content that names none. */
  readonly trackers: readonly string[];
  /** How much of a live stream is kept for seeking, and the disk space for all live streams in bytes. */
  readonly liveWindowMs: number;
  readonly liveLimitBytes: number;
  /** Live media that is later than this behind the fastest arrival is skipped. */
  readonly liveLagMs: number;
  /** `document`: the interface to the letter (`prefuf`); `deployed`: what deployed clients expect (`prebuf`). */
  readonly compat: "document" | "deployed";
  /** True if MPEG-TS players of live streams start at the edge unless they ask for something else. */
  readonly isLowLatency: boolean;
}

/** What `get_media_files` returns. */
export interface ContentDescription {
  readonly name: string;
  readonly infohash: Infohash;
  readonly contentId: ContentId | undefined;
  readonly type: "live" | "vod";
  readonly transportType: "bt" | "hls" | "wrapper";
  readonly files: readonly ContentFile[];
  /** The bytes of the transport file; undefined for content without one. */
  readonly transportFile: Uint8Array | undefined;
}

/** What `analyze_content` returns. */
export interface Analysis {
  readonly contentType:
    | "transport_file"
    | "hls"
    | "hls_vode"
    | "direct_content"
    | "direct_stream"
    | "playlist";
  readonly transportType: "bt" | "hls";
  readonly contentId: ContentId | null;
  readonly infohash: Infohash | null;
  /** The URL to play; null for other content. */
  readonly itemUrl: string | null;
  readonly title: string;
  /** 0 VOD, 1 live, -1 unknown. */
  readonly isLive: 0 | 1 | -1;
  readonly categories: readonly string[];
}

/** Options of {@link Inspector}. */
export interface InspectOptions {
  readonly allowPrivateUrls: boolean;
  /** True if the request comes from a page of another site: such pages share a few transfers. */
  readonly isForeign?: boolean;
  readonly signal?: AbortSignal;
}

/** Describes content without playing it. All methods reject with `SluiceError`. */
export interface Inspector {
  /** Returns the files of content; asks peers if they are not known locally. */
  describe(selector: ContentSelector, options: InspectOptions): Promise<ContentDescription>;
  /** Stores an uploaded transport file permanently, so that its ids can be played; durable when it resolves. */
  keep(bytes: Uint8Array): Promise<ContentDescription>;
  /** Returns the content id of content. Rejects with `content_id_unknown` for content of a web server, which has no swarm. */
  contentIdOf(selector: ContentSelector, options: InspectOptions): Promise<ContentId>;
  /** Determines what a link leads to, by its form and the response of its server. Rejects with `unknown_protocol` if it is no link. */
  analyze(query: string, title: string | undefined, options: InspectOptions): Promise<Analysis>;
  /** Returns stored transport files whose name contains all words of `text`. */
  search(
    text: string,
    limit: number,
  ): Promise<readonly { readonly name: string; readonly infohash: Infohash }[]>;
}

/** Content at the URL of a web server, as its first response described it. */
export interface WebContent {
  /** Includes credentials if the client gave some. */
  readonly url: string;
  /** Request headers that a playlist sets for this URL, names in lower case. Only its origin receives them, except
   * `user-agent`, which every server of the content receives. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** True if the URL, and URLs in its manifest, may lead to loopback and private addresses. */
  readonly allowPrivate: boolean;
  readonly kind: "file" | "stream" | "hls";
  /** Display name. */
  readonly name: string;
  readonly mime: string;
  /** Size of a file in bytes; 0 for a stream without end. */
  readonly size: number;
  /** Validator (RFC 9110 8.8): a strong ETag, else a date; undefined if the server sent neither. */
  readonly validator: string | undefined;
}

/** Controls the live swarm of a transfer, for a broadcast or a relay. */
export interface LiveControl {
  readonly content: LiveContent;
  /** Source only: passes a signed piece to the swarm and to local players. */
  produce(header: SignedHeader, chunks: readonly Uint8Array[]): void;
  /** Source only: publishes signed statistics. */
  tell(stat: SignedStat): void;
  figures(): LiveFigures;
  /** Size of the window on disk. */
  readonly diskBytes?: number;
  /** Must be called before the transfer is released if another transfer of the same stream follows at once. */
  expectSuccessor(): void;
  /** Returns addresses of reachable peers, for the next start. */
  reachablePeers(): readonly PeerAddress[];
  /** True if two versions of the stream were signed within the last minute: the key is used twice, or the source has a bug. */
  readonly isForked: boolean;
  /** Source only: the newest header that another source signed with the same key, in this epoch or a later one. */
  readonly rival: PieceHeader | undefined;
  /** The stream that replaces this one, if its key was changed or revoked. */
  readonly successor: Successor | undefined;
  /** The qualities of the broadcast, this stream (without an infohash) among them; empty if there is only this one. */
  readonly variants: readonly LiveVariant[];
  /** Announce URLs of the newest STAT of the source. */
  readonly toldTrackers?: readonly string[];
  /** Absent for containers that cannot be played. */
  readonly pieces?: PieceSegments;
  /** Returns the limits of what is sent of {@link LiveControl.pieces} to a host; undefined if none apply. */
  uploadAllowance?(host: string): UploadAllowance | undefined;
  /** How far the stream is ahead of this machine's clock if it cannot be played for that reason; else 0. */
  readonly minutesAhead: number;
}

/** Keeps a transfer open for one user. */
export interface Hold {
  readonly transfer: ActiveTransfer;
  /** Releases the transfer; further calls do nothing. */
  release(): void;
  /** Sets whether the holder needs no data for now: a transfer of which all holders rest is idle. */
  rest(isResting: boolean): void;
}

/** A transfer that accepts incoming connections. */
export interface PeerTransfer extends ActiveTransfer {
  /** Takes over a connection whose handshake `first` was read; without it, this side sends one. Undefined: no swarm for it. */
  accept(socket: TcpSocket, first: Uint8Array | undefined): TcpHandlers | undefined;
}

/** Dependencies that all transfers share. */
export interface TransferDependencies {
  readonly runtime: Runtime;
  readonly settings: EngineSettings;
  readonly log: Log;
  readonly openMedia: OpenMedia;
  readonly announcer: Pick<Announcer, "announce" | "scrape">;
  readonly finder: PeerFinder;
  /** Absent if the DHT is off. */
  readonly dht?: Dht;
  readonly outbound: Pick<Outbound, "open">;
  readonly seedSlots: ServerSlots;
  readonly pool: PieceBufferPool;
  readonly memory: PieceMemory;
  /** Undefined: pieces stay in memory only. */
  readonly cache: DiskCache | undefined;
  /** The second level of the cache; undefined: there is none. */
  readonly bucket?: Bucket | undefined;
  readonly kept: TransportFiles;
  readonly connections: ConnectionCount;
  readonly limits: PeerLimits;
  readonly random: Random;
  readonly p2pPort: number;
  readonly makeSwarm: (setup: SwarmSetup, now: Instant) => DrivenSwarm;
}
