import type { PeerAddress } from "../base/address.ts";
import type { RandomAccess, ReadOptions } from "../base/byte-source.ts";
import type { ContentId, Infohash } from "../base/ids.ts";
import type { ItemName } from "../base/item-name.ts";
import type { ByteRange } from "../base/range.ts";
import type { Media } from "../remux/contract.ts";
import type { CandidateOrigin, SwarmFigures } from "../swarm/contract.ts";
import type { LiveRole } from "../wire/live-hello.ts";
import type { TransportFile } from "../wire/metainfo.ts";
import type { WebSeed } from "../wire/web-seeds.ts";
import type { FoundContent } from "./content-search.ts";
import type { DiagnosisRow } from "./diagnosis/contract.ts";
import type { WebContent } from "./http/web-content.ts";
import type { KnownFile } from "./known-file.ts";
import type { LiveContent, LiveControl } from "./live/contract.ts";
import type { ReachSettings, TrackerDesk } from "./reach/contract.ts";
import type { SegmentSource, SourceWish } from "./segment-source.ts";

/** The bytes of one file of a transfer: {@link RandomAccess}, and as a stream that the reader's pull drives. */
export interface ByteSource extends RandomAccess {
  /** Streams `range` in order. Each pull asks for more; cancelling ends the reader and its wants. */
  open(range: ByteRange, options?: ReadOptions): ReadableStream<Uint8Array>;
  /** The same without the stream, for who has memory of its own. */
  reader(range: ByteRange, options?: ReadOptions): ByteReader;
}

/** Goes through a range from its start to its end, one read at a time. */
export interface ByteReader {
  /**
   * Fills the head of `into` and returns how many bytes that were, 0 at the end. A promise where they have to be waited
   * for: `into` is then the reader's until it settles. A reader that failed, or came to its end, has closed itself.
   */
  read(into: Uint8Array): number | Promise<number>;
  /** Ends the reader and its wants; a read that waits rejects with `reason`. */
  close(reason?: unknown): void;
}

/** One file of a transport file, as a player may choose it. */
export interface ContentFile {
  readonly index: number;
  /** Display text only; never a path on our disk. Joined with `/`. */
  readonly name: string;
  readonly size: number;
  /** Where it begins in the whole content, in bytes. */
  readonly offset: number;
  readonly mime: string;
  readonly isPlayable: boolean;
}

/** What a player named. */
export type ContentSelector =
  | { readonly kind: "content_id"; readonly contentId: ContentId }
  | { readonly kind: "infohash"; readonly infohash: Infohash }
  | { readonly kind: "url"; readonly url: string }
  | { readonly kind: "magnet"; readonly magnet: string }
  | { readonly kind: "transport_file"; readonly bytes: Uint8Array };

/** Content being fetched, one for each infohash, shared by all who watch. */
export interface Transfer {
  readonly infohash: Infohash;
  readonly name: string;
  readonly files: readonly ContentFile[];
  /** The SHA-1 of the transport file, where we hold one. */
  readonly contentId: ContentId | undefined;
  readonly figures: SwarmFigures;
  source(fileIndex: number): ByteSource;
  /** The media of a file, opened once and shared; rejects with `SluiceError`. */
  media(fileIndex: number, preferredAudioLanguage: string | undefined, signal?: AbortSignal): Promise<Media>;
  /** Share of the file that is held and verified, 0 to 100. */
  progress(fileIndex: number): number;
  /** Verified bytes at the head of the file. */
  headBytes(fileIndex: number): number;
  /** How the content comes; through a swarm unless said. */
  readonly transportType?: "bt" | "hls" | "wrapper";
  /** For a live stream: its swarm, as its owner sees it. */
  readonly live?: LiveControl | undefined;
  /** For content that comes as segments and not as a file: what is played of it, shared by all with the same wish; instead of `media`. */
  readonly segmentSource?: ((signal: AbortSignal, wish: SourceWish) => Promise<SegmentSource>) | undefined;
}

/** What is known of content when it is first opened. */
export interface TransferContent {
  readonly infohash: Infohash;
  /** Absent for a magnet or a bare infohash: the metadata then comes from peers. */
  readonly transportFile?: TransportFile;
  /** Announce URLs by tier, besides those of the transport file. */
  readonly trackers: readonly (readonly string[])[];
  /** Those announce URLs, of the transport file too, that may lead to loopback and private addresses. None unless said. */
  readonly homeTrackers?: readonly string[];
  /** Web servers that have it (BEP 17, 19), besides those of the transport file. */
  readonly webSeeds?: readonly WebSeed[];
  /** Those of their URLs, and of the transport file's, that may lead to loopback and private addresses. None unless said. */
  readonly homeWebSeeds?: readonly string[];
  /** Peers named by the link itself (`x.pe`), as addresses. */
  readonly peers: readonly PeerAddress[];
  /** The `dn` of a magnet: shown until the metadata is there. */
  readonly displayName?: string;
  /** Content of a web server: there is no swarm. */
  readonly web?: WebContent;
  /** A live stream, where it is known to be one; a magnet's may turn out to be one. */
  readonly live?: LiveContent;
  /** What we are to it, should it turn out to be one; a viewer unless said. */
  readonly liveRole?: LiveRole;
}

/** A transfer as the engine drives it; whoever plays sees only {@link Transfer}. */
export interface ActiveTransfer extends Transfer {
  /** Resolves when the files are known; rejects when the signal fires or the transfer ends. */
  ready(signal?: AbortSignal): Promise<void>;
  /** More ways to find peers for content that is open already. */
  addTrackers(tiers: readonly (readonly string[])[], homeTrackers?: readonly string[]): void;
  addPeers(addresses: readonly PeerAddress[], origin: CandidateOrigin): void;
  /** The whole transport file of files, where the metadata is known; that of a live stream is in `live`. */
  transportFile(): TransportFile | undefined;
  /** Says goodbye to trackers, closes connections, keeps the cache. Readers end with `session_stopped`. */
  stop(): Promise<void>;
}

/** All transfers of the engine: one for each infohash. */
export interface Transfers {
  /** The transfer of this content, made where there is none yet. */
  open(content: TransferContent): ActiveTransfer;
  get(infohash: Infohash): ActiveTransfer | undefined;
  all(): readonly ActiveTransfer[];
  /** The transport file of content that was opened before, where it is still kept. */
  knownTransportFile(infohash: Infohash): Promise<KnownFile | undefined>;
  /** The infohash of the kept transport file whose SHA-1 this is. */
  knownContentId(contentId: ContentId): Promise<Infohash | undefined>;
  /** Asks peers for the transport file of a content id; undefined where none is found in some seconds, or nobody can be
   * asked. Rejects with `too_many`, or as the signal says. */
  findContent(contentId: ContentId, signal?: AbortSignal): Promise<FoundContent | undefined>;
  /** Asks the DHT where a key leads at present (BEP 46). Rejects with `content_id_unknown` where nobody says it in some seconds,
   * or nobody can be asked; with `too_many`; or as the signal says. */
  findByKey(name: ItemName, signal?: AbortSignal): Promise<Infohash>;
  /** Keeps a transport file for good; durable when it resolves. Rejects with `too_many` or `disk_full`. */
  keep(known: KnownFile): Promise<void>;
  /** The content of which a transport file is kept, the latest first. */
  keptInfohashes(): readonly Infohash[];
  readonly p2pPort: number;
  /** Our own tracker; undefined where it is off. */
  readonly tracker: TrackerDesk | undefined;
  cacheFigures(): Promise<CacheFigures>;
  /** How peers reach us and we reach them, part by part. */
  reachRows(): Promise<readonly DiagnosisRow[]>;
  /** Stops every transfer and the P2P listener; resolves when all records are safe. */
  close(): Promise<void>;
}

/** Bytes. */
export interface CacheFigures {
  /** Free on the disk that holds the cache. */
  readonly available: number;
  readonly limit: number;
  /** Held for transfers that are open, and for those that are not. */
  readonly activeInUse: number;
  readonly inactiveInUse: number;
  /** Piece buffers in memory now. */
  readonly memoryInUse: number;
}

/** Everything that can be set about the engine. `src/config.ts` fills it from flags, variables, file and defaults. */
export interface EngineSettings {
  readonly dataDir: string;
  readonly p2pHost: string;
  /** 0: any free port. */
  readonly p2pPort: number;
  readonly cacheLimitBytes: number;
  readonly memoryLimitBytes: number;
  /** Bytes a second; 0 for no limit. */
  readonly uploadLimit: number;
  readonly downloadLimit: number;
  /** A session that nobody reads for so long ends. */
  readonly sessionIdleMs: number;
  /** A transfer without sessions is kept so long, to seed and for those who come back. */
  readonly transferIdleMs: number;
  /** So long a start waits for a first peer, then for metadata, then for first data. */
  readonly peersTimeoutMs: number;
  readonly metadataTimeoutMs: number;
  readonly startTimeoutMs: number;
  readonly maxConnections: number;
  readonly segmentSeconds: number;
  /** Announce URLs, asked for content of which nobody names any. */
  readonly trackers: readonly string[];
  /** How much of a live stream is kept to go back to, and how many bytes of disk all of them may take. */
  readonly liveWindowMs: number;
  readonly liveLimitBytes: number;
  /** Live media is skipped rather than later than this behind its fastest arrival. */
  readonly liveLagMs: number;
  /** `document`: the interface to the letter (`prefuf`); `deployed`: what deployed clients know (`prebuf`). */
  readonly compat: "document" | "deployed";
  /** How peers are found and reached. */
  readonly reach: ReachSettings;
}

/** What `get_media_files` tells of content. */
export interface ContentDescription {
  readonly name: string;
  readonly infohash: Infohash;
  readonly contentId: ContentId | undefined;
  readonly type: "live" | "vod";
  readonly transportType: "bt" | "hls" | "wrapper";
  readonly files: readonly ContentFile[];
  /** The bytes of the transport file, where there is one. */
  readonly transportFile: Uint8Array | undefined;
}

/** What `analyze_content` tells of a link. */
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
  /** What to play, where it is a URL. */
  readonly itemUrl: string | null;
  readonly title: string;
  /** 0 VOD, 1 live, -1 unknown. */
  readonly isLive: 0 | 1 | -1;
  readonly categories: readonly string[];
}

/** How something is looked at. */
export interface InspectOptions {
  readonly allowPrivateUrls: boolean;
  readonly signal?: AbortSignal;
}

/** Looks at content without playing it. Everything rejects with `SluiceError`. */
export interface Inspector {
  /** The files of content; from peers, where nothing nearer knows. */
  describe(selector: ContentSelector, options: InspectOptions): Promise<ContentDescription>;
  /** Keeps an uploaded transport file for good, so that its ids can be played; durable when it resolves. */
  keep(bytes: Uint8Array): Promise<ContentDescription>;
  /** The content id that belongs to an infohash: rejects with `content_id_unknown` where no transport file is to be had. */
  contentIdOf(infohash: Infohash, options: InspectOptions): Promise<ContentId>;
  /** What a link is: looks at its form, and at what its server answers. Rejects with `unknown_protocol` where it is no link. */
  analyze(query: string, title: string | undefined, options: InspectOptions): Promise<Analysis>;
  /** What is known here by name: transport files that are kept, whose name has all words of `text`. */
  search(
    text: string,
    limit: number,
  ): Promise<readonly { readonly name: string; readonly infohash: Infohash }[]>;
}
