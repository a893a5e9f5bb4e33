import type { Infohash } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import type { ByteRange } from "../base/range.ts";
import type { UnixSeconds } from "../base/time.ts";
import type { Outbound } from "../outbound/outbound.ts";
import type { Runtime } from "../runtime/contract.ts";
import type { SwarmFigures } from "../swarm/contract.ts";
import type { LiveRole } from "../wire/live-hello.ts";
import { acquire, readFile } from "./access.ts";
import { createContentResolver } from "./content.ts";
import type {
  CacheFigures,
  ContentFile,
  ContentSelector,
  EngineSettings,
  Inspector,
  Transfer,
  TransferContent,
  Transfers,
} from "./contract.ts";
import type { Diagnosis, HoldUp } from "./diagnosis/contract.ts";
import { findingRows } from "./diagnosis/finding-rows.ts";
import { diagnoseStream } from "./diagnosis/stream-diagnosis.ts";
import { type Hold, Holds } from "./holds.ts";
import { createInspector } from "./inspect.ts";
import type { Broadcasts } from "./live/broadcast-contract.ts";
import { SegmentCache } from "./segment-cache.ts";
import type { ManifestPlace, VariantFacts } from "./segment-source.ts";
import type { LiveStanding } from "./session-live.ts";
import { Sessions } from "./sessions.ts";

/** The engine as the routes and the command line see it. Everything a player asks for goes through here. */
export interface Engine {
  readonly settings: EngineSettings;
  /**
   * Starts (or joins) a playback session. Resolves as soon as the infohash is known; the session then prepares by
   * itself. Rejects with `SluiceError` where the selector cannot be resolved.
   */
  start(request: PlaybackRequest, signal?: AbortSignal): Promise<Session>;
  /** The session of these URL parts, or undefined where it never was or has ended. */
  session(infohash: Infohash, key: string): Session | undefined;
  /** One HLS segment by its URL parts. Renews the session it belongs to. Rejects with `SluiceError`. */
  segment(infohash: Infohash, name: SegmentName, signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>>;
  /**
   * One file of content as it is. `choose` sees the file and names the bytes, or undefined for none. Waits up to 8 s
   * for the first of them; the stream then holds the transfer until it ends. Rejects with `SluiceError`.
   */
  read(infohash: Infohash, fileIndex: number, choose: ChooseRange, signal?: AbortSignal): Promise<FileRead>;
  /** Holds a transfer whose files are known. Rejects with `SluiceError`; never waits longer than the settings say. */
  acquire(selector: ContentSelector, options?: AcquireOptions): Promise<TransferLease>;
  /** Looks at content without playing it. */
  readonly inspect: Inspector;
  /** What we broadcast ourselves. */
  readonly broadcasts: Broadcasts;
  figures(): EngineFigures;
  /** How it is doing, and what stands in the way. */
  diagnosis(): Promise<Diagnosis>;
  cacheFigures(): Promise<CacheFigures>;
  /** Ends all sessions and closes all transfers. Resolves when all records are safe. */
  stop(): Promise<void>;
}

/** What the engine is made of. The engine closes `transfers` when it stops. */
export interface EngineParts {
  readonly runtime: Pick<Runtime, "clock" | "sha1" | "sha256" | "ed25519Verifier" | "randomBytes" | "lookup">;
  readonly settings: EngineSettings;
  readonly log: Log;
  readonly transfers: Transfers;
  readonly outbound: Pick<Outbound, "get" | "open">;
  /** Why the proxy carries nothing; undefined where it does, or there is none. */
  readonly proxyProblem: () => string | undefined;
  /** Makes the broadcasts; a hold that they give back ends its transfer at once. */
  readonly createBroadcasts: (open: (content: TransferContent) => Hold) => Broadcasts;
}

/** One player's wish to play. */
export interface PlaybackRequest {
  readonly selector: ContentSelector;
  /** The `pid`. Undefined: this start is a player of its own. */
  readonly playerId: string | undefined;
  readonly output: "ts" | "hls";
  /** For HLS: what the segments are; `auto` takes TS where it can carry the codecs, else fMP4. */
  readonly container: "auto" | "ts" | "fmp4";
  /** Undefined: the largest playable file. */
  readonly fileIndex: number | undefined;
  readonly audioLanguage: string | undefined;
  /** Of a stream in several forms: at most this height in pixels (`quality`), or this one (`stream_id`; below 0 for ours). */
  readonly maxHeight?: number | undefined;
  readonly variantIndex?: number | undefined;
  /** Echoed; -1 where the player sent none. */
  readonly clientSessionId: number;
  readonly wantsEvents: boolean;
  /** Whether a URL may lead to loopback and private addresses. */
  readonly allowPrivateUrls: boolean;
}

/** One player's lease on one file of a transfer. It ends by `stop`, by its player moving on, or by the clock. */
export interface Session {
  readonly infohash: Infohash;
  /** The last part of the session URLs: 32 hex digits that cannot be guessed. */
  readonly key: string;
  /** `playback_session_id`: 40 hex digits, new for each session. */
  readonly id: string;
  readonly output: "ts" | "hls";
  readonly clientSessionId: number;
  readonly wantsEvents: boolean;
  /** Whether it is being made while it is watched; false while that is not known. */
  readonly isLive: boolean;
  /** Waits until a player would get its first bytes, but not longer than `withinMs`; true where it came to that.
   * Rejects with the reason where playing has turned out impossible. */
  settle(withinMs: number): Promise<boolean>;
  /** Renews the lease. */
  touch(): void;
  /** Goes to a time of a live stream, or to where it is now (-1). Throws `bad_parameter` where that cannot be. */
  liveSeek(to: UnixSeconds | -1): void;
  /** How long the session lives without being read. */
  setIdleMs(idleMs: number): void;
  info(): Promise<SessionInfo>;
  /** The HLS manifest, waited for. `base` is `http://host:port`. The signal ends the wait, here and below. */
  manifest(
    base: string,
    rendition: ManifestRendition,
    signal?: AbortSignal,
    reload?: ManifestReload,
  ): Promise<string>;
  /** The whole content as one transport stream, driven by the reader's pull. Waits up to 8 s for the first data. */
  transportStream(signal?: AbortSignal): Promise<ReadableStream<Uint8Array>>;
  /** The next event, or undefined where none came within `withinMs`. A second call ends the first one's wait. */
  nextEvent(withinMs: number, signal?: AbortSignal): Promise<SessionEvent | undefined>;
  stop(): void;
}

/** Which playlist of the session: what a player opens, the media playlist behind a master, a subtitle track's (from 0), or
 * that of sound of its own (from 1). */
export type ManifestRendition =
  | "main"
  | "media"
  | { readonly subtitles: number }
  | { readonly audio: number };

/** What a player that reads a live manifest again wishes; see {@link ManifestPlace}. */
export type ManifestReload = Pick<ManifestPlace, "reload" | "isDelta">;

/** An event as the interface's event URL tells it. */
export interface SessionEvent {
  readonly name: string;
  readonly params: Readonly<Record<string, string | number>>;
}

/** What `stat` shows. Bytes, and bytes a second. */
export interface SessionInfo {
  readonly status: "starting" | "playing" | "failed";
  /** Why it failed. */
  readonly problem: Error | undefined;
  /** Share of what is needed before the first byte can be served, 0 to 100. */
  readonly progress: number;
  /** Share of the file that is held, 0 to 100. */
  readonly totalProgress: number;
  /** -1 while the files are not known. */
  readonly fileIndex: number;
  readonly figures: SwarmFigures;
  /** Where the window of a live stream lies, and the player in it; undefined for anything else. */
  readonly live: LiveStanding | undefined;
  /** Why its player waits; undefined where it does not. */
  readonly holdUp: HoldUp | undefined;
  /** The forms of an HLS stream, and which is played; none, and -1, where there is one only. */
  readonly variants: readonly VariantFacts[];
  readonly variantIndex: number;
  readonly cache: CacheFigures;
}

/** The parts of a segment's name: `<number>.ts`, `.m4s`, `.mp4` (initialisation), `.vtt` (with its track); sound of its own
 * has its track too, from 1. */
export interface SegmentName {
  readonly number: number;
  readonly kind: "ts" | "m4s" | "mp4" | "vtt";
  readonly track: number;
  /** A part of a live segment (`<number>.p<part>.ts`), from 0; absent for the whole. */
  readonly part?: number;
}

/** Names the bytes of a file that shall be streamed. */
export type ChooseRange = (file: ContentFile) => ByteRange | undefined;

/** A file, and the bytes that were chosen of it. */
export interface FileRead {
  readonly file: ContentFile;
  readonly stream: ReadableStream<Uint8Array> | undefined;
}

export interface AcquireOptions {
  readonly signal?: AbortSignal;
  readonly allowPrivateUrls?: boolean;
  /** What we are to it, should it be a live stream; a viewer unless said. */
  readonly liveRole?: LiveRole;
  /** Told about every half second while the files are not known yet. */
  readonly onProgress?: (figures: SwarmFigures) => void;
}

/** Keeps a transfer alive until it is released. */
export interface TransferLease {
  readonly transfer: Transfer;
  /** The files a magnet names (`so`), where it does. */
  readonly selectedFiles: readonly number[] | undefined;
  release(): void;
}

export interface EngineFigures {
  readonly sessions: number;
  readonly transfers: readonly {
    readonly infohash: Infohash;
    readonly name: string;
    readonly holders: number;
    readonly figures: SwarmFigures;
  }[];
}

/** Puts the engine together. Nothing starts before it is asked for. */
export function createEngine(parts: EngineParts): Engine {
  const { runtime, settings, transfers, proxyProblem } = parts;
  const { clock } = runtime;
  const log = parts.log.named("engine");
  const resolve = createContentResolver({ ...parts, log });
  const holds = new Holds({ clock, transfers, idleMs: settings.transferIdleMs, log });
  const segments = new SegmentCache();
  const access = { clock, settings, resolve, holds };
  const sessions = new Sessions({ ...access, runtime, segments, transfers, proxyProblem, log });
  const broadcasts = parts.createBroadcasts((content) => holds.openOwned(content));
  return {
    settings,
    start: (request, signal) => sessions.start(request, signal),
    session: (infohash, key) => sessions.get(infohash, key),
    segment: (infohash, name, signal) => sessions.segment(infohash, name, signal),
    read: (infohash, fileIndex, choose, signal) => readFile(access, infohash, fileIndex, choose, signal),
    acquire: (selector, options) => acquire(access, selector, options),
    broadcasts,
    inspect: createInspector({ clock, outbound: parts.outbound, transfers, access }),
    async diagnosis() {
      const all = transfers.all();
      return {
        rows: [...findingRows(all.map((transfer) => transfer.figures)), ...(await transfers.reachRows())],
        streams: all.map((transfer) => diagnoseStream(transfer, sessions.holdUps(transfer.infohash))),
      };
    },
    figures: () => ({ sessions: sessions.count, transfers: holds.figures() }),
    cacheFigures: () => transfers.cacheFigures(),
    async stop() {
      sessions.stopAll();
      await broadcasts.close();
      holds.close();
      segments.clear();
      await transfers.close();
    },
  };
}
