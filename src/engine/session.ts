import { SluiceError, type SluiceErrorCode } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import type { Instant, UnixSeconds } from "../base/time.ts";
import { underEither } from "../remux/either-signal.ts";
import { type Access, chooseFile } from "./access.ts";
import type { CacheFigures, ContentFile } from "./contract.ts";
import type { HoldUp } from "./diagnosis/contract.ts";
import { explainHoldUp } from "./diagnosis/hold-up.ts";
import { playbackFacts } from "./diagnosis/playback-facts.ts";
import type {
  ManifestReload,
  ManifestRendition,
  PlaybackRequest,
  SegmentName,
  Session,
  SessionEvent,
  SessionInfo,
} from "./engine.ts";
import { FilmSource } from "./film-source.ts";
import { HELD_HEADERS_MS, orLater } from "./guarded-stream.ts";
import { heldManifest } from "./held-manifest.ts";
import type { Hold } from "./holds.ts";
import { LatestFew } from "./latest-few.ts";
import { OpeningReader } from "./opening-reader.ts";
import { awaitFiles, onceBegun, whileBytesCome } from "./patience.ts";
import { orAborted, type SegmentBytes, type SegmentCache } from "./segment-cache.ts";
import { SegmentReader } from "./segment-reader.ts";
import type { ManifestPlace, SegmentSource } from "./segment-source.ts";
import { SessionEvents } from "./session-events.ts";
import { SessionLease } from "./session-lease.ts";
import { cannotSeek, SessionLive } from "./session-live.ts";
import { SessionMedia } from "./session-media.ts";
import { SessionWaits } from "./session-waits.ts";
import { type ChunkReader, transportStream } from "./ts-stream.ts";

/** What a session is made of. */
export interface SessionParts {
  readonly access: Access;
  readonly segments: SegmentCache;
  /** For what has a window of its own. */
  readonly liveSegments: SegmentCache;
  readonly cacheFigures: () => Promise<CacheFigures>;
  readonly proxyProblem: () => string | undefined;
  readonly log: Log;
  readonly hold: Hold;
  readonly request: PlaybackRequest;
  readonly selectedFiles: readonly number[] | undefined;
  readonly key: string;
  readonly id: string;
  /** HLS only: the number of its segments' names in millions, which tells the sessions of one transfer apart (see
   * `segmentNumber`). */
  readonly ordinal: number | undefined;
  /** Called once, when the session has ended. */
  ended(session: PlayerSession, reason: SluiceError): void;
}

/** So much of the head of a file is usually there before the first segment can be made. Only for showing progress. */
const HEAD_BYTES = 2 * 1024 * 1024;

/** A start that ended with one of these may be tried again. */
const STUCK: ReadonlySet<SluiceErrorCode> = new Set(["no_peers", "metadata_timeout", "start_timeout"]);

/** One player's lease on one file of a transfer. */
export class PlayerSession implements Session {
  readonly infohash: Infohash;
  readonly key: string;
  readonly id: string;
  readonly ordinal: number | undefined;
  readonly output: "ts" | "hls";
  /** When its latest start was asked, as a running number: the newest start of a player wins. */
  order = 0;
  clientSessionId: number;
  wantsEvents: boolean;
  readonly #parts: SessionParts;
  readonly #events: SessionEvents;
  readonly #requests = new LatestFew();
  readonly #live = new SessionLive();
  readonly #waits: SessionWaits;
  readonly #lease: SessionLease;
  readonly #ended = new AbortController();
  #opened: Promise<SessionMedia>;
  #source: SegmentSource | undefined;
  #playing: Promise<void>;
  #file: ContentFile | undefined;
  #status: SessionInfo["status"] = "starting";
  #problem: Error | undefined;

  constructor(parts: SessionParts) {
    const { hold, request, access } = parts;
    this.#parts = parts;
    this.infohash = hold.transfer.infohash;
    this.key = parts.key;
    this.id = parts.id;
    this.ordinal = parts.ordinal;
    this.output = request.output;
    this.clientSessionId = request.clientSessionId;
    this.wantsEvents = request.wantsEvents;
    // Where the files are known already, the file is too: the next start of this player must find the same.
    if (hold.transfer.files.length > 0) this.#file = this.#chooseFile();
    this.#events = new SessionEvents(access.clock);
    this.#waits = new SessionWaits(access.clock);
    this.#lease = new SessionLease(access.clock, access.settings.sessionIdleMs, () =>
      this.end(new SluiceError("unknown_session", "nobody has read the session for its idle time")),
    );
    this.#opened = this.#open();
    this.#playing = this.#begun();
  }

  /** What makes two starts of one player the same session, besides the infohash. */
  get variant(): string {
    return variantOf(this.#parts.request);
  }

  get request(): PlaybackRequest {
    return this.#parts.request;
  }

  /** The player's `pid`, where it sent one. */
  get playerId(): string | undefined {
    return this.#parts.request.playerId;
  }

  /** The file: as found, else as asked, else -1. */
  get fileIndex(): number {
    return this.#file?.index ?? this.#parts.request.fileIndex ?? -1;
  }

  /** Whether nothing more is to be had of it: it has failed, or `transfer` has taken the place of its own. */
  isSpent(transfer: Hold["transfer"]): boolean {
    return this.#status === "failed" || this.#parts.hold.transfer !== transfer;
  }

  get isBusy(): boolean {
    return this.#lease.isBusy;
  }

  get lastUse(): Instant {
    return this.#lease.lastUse;
  }

  async settle(withinMs: number): Promise<boolean> {
    return orLater(this.#playing, this.#parts.access.clock, withinMs);
  }

  touch(): void {
    this.#lease.touch();
  }

  setIdleMs(idleMs: number): void {
    this.#lease.setIdleMs(idleMs);
  }

  get isLive(): boolean {
    return this.#source?.isLive ?? this.#parts.hold.transfer.live !== undefined;
  }

  liveSeek(to: UnixSeconds | -1): void {
    if (!this.#source) throw cannotSeek("the stream has not begun yet");
    this.#live.seek(to, this.#source);
  }

  async info(): Promise<SessionInfo> {
    const { transfer } = this.#parts.hold;
    const cache = await this.#parts.cacheFigures();
    return {
      status: this.#status,
      problem: this.#problem,
      progress: this.#progress(),
      totalProgress: this.#file ? transfer.progress(this.#file.index) : 0,
      fileIndex: this.#file?.index ?? -1,
      figures: transfer.figures,
      live: this.#source && this.#live.standing(this.#source),
      holdUp: this.holdUp(),
      variants: this.#source?.variants ?? [],
      variantIndex: this.#source?.variantIndex ?? -1,
      cache,
    };
  }

  manifest(
    base: string,
    rendition: ManifestRendition,
    asker?: AbortSignal,
    reload: ManifestReload = {},
  ): Promise<string> {
    const { clock } = this.#parts.access;
    return this.#for(asker, async (signal) => {
      const { source } = await orAborted(this.#opened, signal);
      const place = { ...this.#place(base), shiftMs: this.#live.shiftMs, ...reload };
      return this.#patiently((stop) => heldManifest(clock, source, place, rendition, stop), signal);
    });
  }

  async transportStream(asker?: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    const { access } = this.#parts;
    await this.#for(asker, (signal) =>
      orAborted(orLater(this.#playing, access.clock, HELD_HEADERS_MS), signal),
    );
    const make = async () => this.#reader(await this.#opened);
    const reader = new OpeningReader(access.clock, this.#opened, make, this.#lease.openStream());
    return transportStream(reader, this.#ended.signal, () => this.touch());
  }

  /** The segment of this name; `index` is its number within the session. */
  namedSegment(name: SegmentName, index: number, asker?: AbortSignal): Promise<SegmentBytes> {
    return this.#for(asker, (either) =>
      this.#requests.run(either, async (signal) =>
        (await orAborted(this.#opened, signal)).named(name, index, signal),
      ),
    );
  }

  /** Why its player waits; undefined where it does not. */
  holdUp(): HoldUp | undefined {
    const { access, hold, proxyProblem } = this.#parts;
    if (this.#status === "failed") return undefined;
    // Players of HLS that get no answer soon look again and again: no single wait is long.
    const stillSince = this.#source && this.#live.stillSince(this.#source);
    const explain = (waitingMs: number) =>
      explainHoldUp(
        playbackFacts(hold.transfer, {
          waitingMs,
          neededBytesPerSecond: this.#source?.bytesPerSecond,
          downloadLimit: access.settings.downloadLimit,
          proxyProblem: proxyProblem(),
          unixMs: 1000 * access.clock.unixSeconds(),
        }),
      );
    return this.#waits.holdUp(this.#lease.lastUse, explain, stillSince);
  }

  nextEvent(withinMs: number, asker?: AbortSignal): Promise<SessionEvent | undefined> {
    return this.#events.next(withinMs, asker);
  }

  stop(): void {
    this.end(new SluiceError("session_stopped", "the session was stopped"));
  }

  /** Ends the session: whoever waits or reads hears `reason`. */
  end(reason: SluiceError): void {
    if (this.#ended.signal.aborted) return;
    this.#lease.end();
    if (this.wantsEvents) this.#events.push({ name: "download_stopped", params: { reason: reason.message } });
    this.#events.close();
    this.#ended.abort(reason);
    this.#parts.hold.release();
    this.#parts.ended(this, reason);
  }

  /** One connection's way through what is played. */
  #reader(media: SessionMedia): ChunkReader {
    const { clock } = this.#parts.access;
    const { source } = media;
    if (source.live)
      return this.#live.open(source.live, clock, (next, signal) =>
        this.#use(() => this.#patiently(next, signal)),
      );
    return new SegmentReader({
      clock,
      first: (signal) => source.first(signal),
      reach: (index, signal) => this.#use(() => media.reach(index, signal)),
      segment: (index, signal) => this.#use(() => media.segment("ts", index, 0, signal)),
    });
  }

  #place(base: string): ManifestPlace {
    const { infohash, key, ordinal = 0 } = this;
    return { base, session: { infohash, key, ordinal } };
  }

  async #open(): Promise<SessionMedia> {
    const { access, hold, request } = this.#parts;
    const { transfer } = hold;
    const { signal } = this.#ended;
    const wasLive = this.isLive;
    await this.#waits.during(() => awaitFiles(access, transfer, { signal }));
    this.#file ??= this.#chooseFile();
    const file = this.#file;
    const open = async (stop: AbortSignal) => {
      if (transfer.segmentSource) return suited(await transfer.segmentSource(stop, request), request);
      const media = await transfer.media(file.index, request.audioLanguage, stop);
      return new FilmSource(transfer.infohash, file, media, request);
    };
    this.#source = await this.#waits.during(() => whileBytesCome(access, transfer, open, signal));
    // Whoever was told something else when it started hears what it is.
    if (this.isLive !== wasLive && this.wantsEvents)
      this.#events.push({ name: "live_changed", params: { is_live: this.isLive ? 1 : 0 } });
    return new SessionMedia(this.#source, {
      ...this.#parts,
      ended: signal,
      patiently: (work, stop) => this.#patiently(work, stop),
    });
  }

  #chooseFile(): ContentFile {
    const { hold, request, selectedFiles } = this.#parts;
    return chooseFile(hold.transfer, request.fileIndex, selectedFiles);
  }

  /** That a player which begins finds something is what `dl` tells. */
  #begun(): Promise<void> {
    const playing = this.#opened.then(async (media) => {
      await media.first(this.output === "hls" ? this.#place("") : undefined);
      this.#status = "playing";
    });
    playing.catch((thrown) => this.#failed(thrown));
    return playing;
  }

  /** Players ask again where a start got stuck: the swarm may have come to life meanwhile. */
  #tryAgain(): void {
    if (!(this.#problem instanceof SluiceError) || !STUCK.has(this.#problem.code)) return;
    this.#status = "starting";
    this.#problem = undefined;
    this.#opened = this.#open();
    this.#playing = this.#begun();
  }

  #failed(thrown: unknown): void {
    if (this.#ended.signal.aborted) return;
    this.#status = "failed";
    this.#problem = thrown instanceof Error ? thrown : new Error(String(thrown));
    this.#parts.log.warn("a session cannot play", { infohash: this.infohash, reason: this.#problem.message });
  }

  /** Waits for what needs bytes, for as long as they come: a start shorter than a film that has begun. */
  #patiently<T>(work: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T> {
    const { access, hold } = this.#parts;
    const patience = this.#status === "playing" ? onceBegun(access) : access;
    return this.#waits.during(() => whileBytesCome(patience, hold.transfer, work, signal));
  }

  /** Does what is asked; its signal fires when whoever asked has gone, and when the session ends. */
  #for<T>(asker: AbortSignal | undefined, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return this.#use(() => underEither(asker, this.#ended.signal, work));
  }

  async #use<T>(work: () => Promise<T>): Promise<T> {
    this.#ended.signal.throwIfAborted();
    this.#tryAgain();
    try {
      return await this.#lease.during(work);
    } catch (thrown) {
      // The transfer has ended under us, as that of a broadcast does: the next start opens it anew.
      if (thrown instanceof SluiceError && thrown.code === "session_stopped") this.end(thrown);
      throw thrown;
    }
  }

  #progress(): number {
    if (this.#status === "playing") return 100;
    if (!this.#file) return 0;
    const needed = Math.max(1, Math.min(HEAD_BYTES, this.#file.size));
    return Math.min(99, Math.floor((100 * this.#parts.hold.transfer.headBytes(this.#file.index)) / needed));
  }
}

/** What makes two starts of one player on one file the same session. */
export function variantOf(request: PlaybackRequest): string {
  const { output, container, audioLanguage = "", maxHeight = "", variantIndex = -1 } = request;
  return `${output} ${container} ${audioLanguage} ${maxHeight} ${variantIndex}`;
}

/** What comes as segments is passed on as it is; throws where the player asked for something else. */
function suited(source: SegmentSource, request: PlaybackRequest): SegmentSource {
  const wanted = request.output === "ts" ? "ts" : request.container;
  if (wanted === "auto" || wanted === source.container) return source;
  const what = source.container === "ts" ? "MPEG-TS" : "fragmented MP4";
  throw new SluiceError("unsupported_container", `this stream comes in ${what} and is passed on as it is`);
}
