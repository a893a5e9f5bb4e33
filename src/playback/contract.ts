import type { Infohash } from "../base/ids.ts";
import type { ByteRange } from "../base/range.ts";
import type { UnixSeconds } from "../base/time.ts";
import type { PictureState, SecondsRange } from "../media/picture-subtitles.ts";
import type { TextCue } from "../media/webvtt.ts";
import type { OwnLimits } from "../net/peer-limits.ts";
import type { SwarmFigures } from "../protocol/swarm/contract.ts";
import type { AudioConversion, AudioRequest } from "../remux/contract.ts";
import type { ChannelState } from "../transfer/channel-contract.ts";
import type {
  CacheFigures,
  ContentFile,
  ContentSelector,
  Transfer,
  TransferContent,
} from "../transfer/contract.ts";
import type {
  ManifestPlace,
  ManifestRendition,
  PlayerMedia,
  SegmentName,
  VariantFacts,
} from "../transfer/segment-source.ts";
import type { FoundManifest } from "../web-content/probe.ts";
import type { LiveRole } from "../wire/live/peer-info.ts";
import type { RoleKey } from "../wire/live/role-proof.ts";
import type { Buffering } from "./diagnosis/contract.ts";
import type { PictureJson } from "./picture-json.ts";
import type { SegmentBody } from "./segment-body.ts";
import type { PlayerPosition } from "./session-live.ts";

/** What browsers decode in HLS. */
export const BROWSER_AUDIO: ReadonlySet<string> = new Set(["aac", "mp3", "opus", "flac"]);

/** `auto` keeps the output of the endpoint; `original` is HLS for content that comes as HLS, else MPEG-TS. */
export type OutputFormat = "auto" | "original" | "hls" | "http";

/** The program that asks for content, for the operator of the engine. */
export interface PlayerClient {
  /** The IP address of its host. */
  readonly host: string;
  /** Its user agent, cut to a bounded length; empty if it sent none. */
  readonly program: string;
}

/** A manifest of a session: one of its source, or that of one quality of a broadcast (from 0). */
export type SessionRendition = ManifestRendition | { readonly variant: number };

/** A request to play content. */
export interface PlaybackRequest {
  /** Undefined: the engine itself asks, such as for a recording. */
  readonly client?: PlayerClient | undefined;
  readonly selector: ContentSelector;
  /** The `pid`. Undefined: this start counts as a separate player. */
  readonly playerId: string | undefined;
  readonly output: "ts" | "hls";
  /** Container of HLS segments; `auto`: TS if it can carry the codecs, else fMP4; `raw`: continuous streams are the file itself. */
  readonly container: "auto" | "ts" | "fmp4" | "raw";
  /** Undefined: the first file to play; see `playOrder`. */
  readonly fileIndex: number | undefined;
  readonly audioLanguage: string | undefined;
  /** The audio that is converted to AAC; undefined: none. */
  readonly audioConversion?: AudioConversion | undefined;
  /** Selects a variant of the stream: at most this height in pixels (`quality`), or this index (`stream_id`; negative: the engine chooses). */
  readonly maxHeight?: number | undefined;
  readonly variantIndex?: number | undefined;
  /** Returned to the player as it is; -1 if the player sent none. */
  readonly clientSessionId: number;
  /** All events (`use_api_events`), or only the end of the session (`use_stop_notifications`, `use_api_stop`). */
  readonly wantsEvents: boolean;
  /** True if an MPEG-TS player of a live stream starts at its edge, without a backlog. */
  readonly isLowLatency?: boolean;
  readonly wantsStops?: boolean;
  /** CHOICE(playlist-parameters): this and the next four. Starts anew instead of joining a session of the same player (`force_session_restart`). */
  readonly isRestart?: boolean;
  /** Refuses content that comes from peers (`disable_p2p`). */
  readonly withoutPeers?: boolean;
  /** The files to play, in place of those that the link selects (`playlist_selected_indexes`). */
  readonly selectedFiles?: readonly number[] | undefined;
  /** The files that will probably be played next (`next_file_indexes`). */
  readonly nextFiles?: readonly number[] | undefined;
  /** Replaces `output` for live streams and for other content (`playlist_output_format_live`, `…_vod`). */
  readonly outputFormats?: { readonly live: OutputFormat; readonly vod: OutputFormat };
  /** True if a URL may lead to loopback and private addresses. */
  readonly allowPrivateUrls: boolean;
  /** True if a page of another site asks: such pages share a few slots. */
  readonly isForeign?: boolean;
  /** True for the one session behind the URLs that all players share; see {@link SharedPlayback}. */
  readonly isShared?: boolean;
  /** True if no player asks but a visit: its transfer stops receiving as soon as the session ends. */
  readonly isVisit?: boolean;
  /** True if no player asks but the engine itself, such as for a recording. */
  readonly isBackground?: boolean;
}

/** The content of URLs that name no session. */
export interface SharedContent {
  readonly infohash: Infohash;
  /** Undefined for a live stream. */
  readonly fileIndex: number | undefined;
  /** True for a file whose audio is also offered as AAC. */
  readonly convertsAudio: boolean;
  /** True if a page of another site asks. */
  readonly isForeign: boolean;
}

/** A response that caches may keep. */
export interface Cacheable {
  /** Changes with the bytes, and is the same on every engine that has the same bytes; without quotes. */
  readonly tag: string;
  /** How long caches may serve it without asking again. */
  readonly freshSeconds: number;
  /** True if its URL never has other bytes. */
  readonly isImmutable: boolean;
}

/** HLS without sessions in its URLs, for caches in front of one or more engines. All methods reject with `SluiceError`. */
export interface SharedPlayback {
  manifest(
    content: SharedContent,
    rendition: ManifestRendition,
    signal?: AbortSignal,
  ): Promise<Cacheable & { readonly text: string }>;
  segment(
    content: SharedContent,
    name: SegmentName,
    signal?: AbortSignal,
  ): Promise<Cacheable & { readonly body: SegmentBody }>;
}

/** Text subtitles of a film: a track in its file, or a subtitle file of the same content. */
export interface FilmSubtitle {
  /** Its number in the names of manifests, segments and addresses. */
  readonly number: number;
  /** `subrip`, `ass`, `webvtt`, `tx3g`. */
  readonly codec: string;
  /** ISO 639-2; `und` if unknown. */
  readonly language: string;
  readonly title: string | undefined;
  /** Only essential text, such as translations of signs. */
  readonly isForced: boolean;
  /** How many calls of `cues` return all of them: the segments of the film. */
  readonly segments: number;
  /** Returns the cues that begin in segment `index` of the film. Rejects with `SluiceError`. */
  cues(index: number, signal: AbortSignal | undefined): Promise<readonly TextCue[]>;
}

/** Subtitles of a film that are pictures: a track in its file, or a file of the same content. */
export interface FilmPictures extends Omit<FilmSubtitle, "cues" | "segments"> {
  /** Returns what is shown from within `seconds` on. Rejects with `SluiceError`. */
  states(seconds: SecondsRange, signal: AbortSignal | undefined): Promise<readonly PictureState[]>;
}

/** Returns what a request asks of the audio of a file. */
export function audioOf({
  audioLanguage,
  audioConversion,
}: Pick<PlaybackRequest, "audioLanguage" | "audioConversion">): AudioRequest {
  return { language: audioLanguage, conversion: audioConversion };
}

/** One player's lease on one file of a transfer. It ends by `stop`, when its player starts other content, or by timeout. */
export interface Session {
  readonly infohash: Infohash;
  /** The last part of the session URLs: 32 unpredictable hex digits. */
  readonly key: string;
  /** `playback_session_id`: 40 hex digits, new for each session. */
  readonly id: string;
  readonly output: "ts" | "hls";
  readonly clientSessionId: number;
  readonly wantsEvents: boolean;
  /** True for content of a web server, which comes without peers. */
  readonly isDirect: boolean;
  /** True for content that is made while it is watched; false while that is not known. */
  readonly isLive: boolean;
  /** True while a player reads it: a request is in progress, a stream is open, or HLS was read a moment ago. */
  readonly isPlayed: boolean;
  /** Waits until playback can start, for `withinMs` at most. Returns true if it can. Rejects with the reason if playback is
   * not possible. */
  settle(withinMs: number): Promise<boolean>;
  /** Renews the lease. */
  touch(): void;
  /** Moves to a time of a live stream, or to its edge (-1). Throws `bad_parameter` if the stream cannot seek. */
  liveSeek(to: UnixSeconds | -1): void;
  /** Continues with this variant of the stream; negative: the engine chooses. Rejects with `bad_parameter` if there is none. */
  setStream(index: number): Promise<void>;
  /** Sets how long the session lives without requests. */
  setIdleMs(idleMs: number): void;
  /** Returns what `stat` shows. */
  info(): Promise<SessionInfo>;
  /** Waits for the HLS manifest. `base` is `http://host:port`. The signal cancels the wait, here and below. */
  manifest(
    base: string,
    rendition: SessionRendition,
    signal?: AbortSignal,
    reload?: ManifestReload,
  ): Promise<string>;
  /** Waits up to 8 s for the first data, before a response needs its headers. Rejects with the reason if the start fails. */
  awaitStart(signal?: AbortSignal): Promise<void>;
  /** The content as a body of known size, for players that seek by byte ranges; undefined if it has none, or none yet. */
  readonly body: PlayerBody | undefined;
  /** The exact size of the transport stream in bytes; undefined if it is not known, or not yet. */
  readonly streamBytes: number | undefined;
  /**
   * Returns the content as one transport stream, driven by the reader's pull. Waits up to 8 s for the first data. `remux`
   * connects the pieces of the content with their remuxer when the content is open. `range`: only these bytes of it, if its size is
   * known.
   */
  transportStream(
    remux: RemuxForPlayer,
    signal?: AbortSignal,
    range?: ByteRange,
  ): Promise<ReadableStream<Uint8Array>>;
  /** Returns the next event, or undefined after `withinMs`. A second call ends the first one's wait. */
  nextEvent(withinMs: number, signal?: AbortSignal): Promise<SessionEvent | undefined>;
  stop(): void;
}

/** Content as one body of known size. */
export interface PlayerBody {
  readonly mime: string;
  readonly size: number;
  /** Returns the bytes of a range for one response, driven by the reader's pull. */
  open(range: ByteRange): ReadableStream<Uint8Array>;
}

/** Connects the pieces of content with their remuxer: `({ pieces, remuxer }) => pieces.pipeThrough(remuxer)`. */
export type RemuxForPlayer = (media: PlayerMedia) => ReadableStream<Uint8Array>;

/** Parameters of a repeated request for a live manifest; see {@link ManifestPlace}. */
export type ManifestReload = Pick<ManifestPlace, "reload" | "isDelta">;

/** An event, as the event URL of the interface returns it. */
export interface SessionEvent {
  readonly name: string;
  readonly params: Readonly<Record<string, string | number>>;
}

/** What `stat` shows. Sizes in bytes, rates in bytes per second. */
export interface SessionInfo {
  readonly status: "starting" | "playing" | "failed";
  /** Why the session failed. */
  readonly problem: Error | undefined;
  /** Progress of the start, 0 to 100. */
  readonly progress: number;
  /** Held share of the file, 0 to 100. */
  readonly totalProgress: number;
  /** -1 while the files are not known. */
  readonly fileIndex: number;
  readonly figures: SwarmFigures;
  /** The window of a live stream and the position of the player; undefined for other content. */
  readonly live: PlayerPosition | undefined;
  /** Why the player waits; undefined if it does not. */
  readonly buffering: Buffering | undefined;
  /** The sources of a channel; undefined for other content. */
  readonly channel?: ChannelState | undefined;
  /** The variants of an HLS stream, and the index of the one that is played; none and -1 if there is only one. */
  readonly variants: readonly VariantFacts[];
  readonly variantIndex: number;
  readonly cache: CacheFigures;
}

/** What the operator sees of a session. */
export interface SessionActivity
  extends Omit<SessionInfo, "cache" | "figures" | "variants" | "variantIndex"> {
  readonly infohash: Infohash;
  readonly key: string;
  readonly client: PlayerClient | undefined;
  readonly output: "ts" | "hls";
  readonly isLive: boolean;
  /** True if its player reads it now. */
  readonly isPlayed: boolean;
  /** True if its audio is converted. */
  readonly isConverted: boolean;
  readonly startedAt: UnixSeconds;
}

/** What the operator sees of a transfer. Sizes in bytes. */
export interface TransferActivity {
  readonly infohash: Infohash;
  readonly name: string;
  /** Sessions and other users; 0: it only seeds, and will be closed. */
  readonly holders: number;
  /** `own`: a broadcast of this engine. */
  readonly kind: "files" | "live" | "own" | "web";
  /** Size of the content; 0 for a stream or while it is not known. */
  readonly size: number;
  /** Bytes of it that are held in memory or on disk. */
  readonly heldBytes: number;
  readonly figures: SwarmFigures;
  /** Its own limits. */
  readonly limits: OwnLimits;
}

/** Options for opening content without a session. */
/** Options of `Engine.read`. */
export interface ReadOptions {
  readonly signal?: AbortSignal | undefined;
  /** See {@link PlaybackRequest}. */
  readonly isForeign?: boolean;
}

export interface AcquireOptions extends ReadOptions {
  readonly allowPrivateUrls?: boolean;
  /** Our role if the content is a live stream; viewer by default. */
  readonly liveRole?: LiveRole;
  /** Proves that role to peers. */
  readonly roleKey?: RoleKey;
  /** Called every half second while the files are not known. */
  readonly onProgress?: (figures: SwarmFigures) => void;
}

/** Returns the byte range of a file to read, or undefined to read nothing. */
export type ChooseRange = (file: ContentFile) => ByteRange | undefined;

/** The subtitles of a file, while its transfer is held. */
export interface SubtitleLease {
  /** Those that are pictures. */
  readonly pictures: readonly Omit<FilmPictures, "states">[];
  /** Returns what the pictures with this number show from within `seconds` on, and releases the transfer. */
  statesOf(number: number, seconds: SecondsRange): Promise<readonly PictureJson[]>;
  readonly subtitles: readonly Omit<FilmSubtitle, "cues">[];
  /** Returns all subtitles with this number as a file, which is made as it is read, and releases the transfer at its end. They
   * are shown `delaySeconds` later (if negative, earlier). Throws `no_such_segment`. */
  open(number: number, format: "vtt" | "srt", delaySeconds: number): ReadableStream<Uint8Array>;
  release(): void;
}

/** A file and the requested bytes of it. */
export interface FileRead {
  readonly file: ContentFile;
  readonly stream: ReadableStream<Uint8Array> | undefined;
}

/** Keeps a transfer alive until it is released. */
export interface TransferLease {
  readonly transfer: Transfer;
  /** The file indexes that a magnet selects (`so`, BEP 53); undefined if it selects none. */
  readonly selectedFiles: readonly number[] | undefined;
  release(): void;
  /** See {@link Hold.rest}. */
  rest(isResting: boolean): void;
}

/** The content that a selector names. */
export interface ResolvedContent {
  readonly content: TransferContent;
  /** The file indexes that a magnet selects (`so`, BEP 53); undefined if it selects none. */
  readonly selectedFiles: readonly number[] | undefined;
  /** The HLS manifest, if it was requested and the server was queried for this call. */
  readonly manifest?: FoundManifest | undefined;
}

/** Determines the content that a selector names. Rejects with `SluiceError`. */
export type ContentResolver = (
  selector: ContentSelector,
  options: ResolveOptions,
) => Promise<ResolvedContent>;

/** Options of {@link ContentResolver}. */
export interface ResolveOptions {
  readonly allowPrivateUrls: boolean;
  readonly signal?: AbortSignal | undefined;
  /** Requests the HLS manifest too; the limit of its size in bytes. */
  readonly manifestLimitBytes?: number | undefined;
}
