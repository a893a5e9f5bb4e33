import { SluiceError, type SluiceErrorCode } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import { after, type Instant } from "../base/time.ts";
import { underEither } from "../remux/either-signal.ts";
import { type Access, chooseFile } from "./access.ts";
import type { CacheFigures, ContentFile } from "./contract.ts";
import type {
  ManifestRendition,
  PlaybackRequest,
  SegmentName,
  Session,
  SessionEvent,
  SessionInfo,
} from "./engine.ts";
import { FilmSource } from "./film-source.ts";
import { HELD_HEADERS_MS, orLater } from "./guarded-stream.ts";
import type { Hold } from "./holds.ts";
import { LatestFew } from "./latest-few.ts";
import { awaitFiles, onceBegun, whileBytesCome } from "./patience.ts";
import { orAborted, type SegmentBytes, type SegmentCache } from "./segment-cache.ts";
import type { SegmentSource } from "./segment-source.ts";
import { SessionEvents } from "./session-events.ts";
import { segmentKey } from "./session-segments.ts";
import { transportStream } from "./ts-stream.ts";

/** What a session is made of. */
export interface SessionParts {
  readonly access: Access;
  readonly segments: SegmentCache;
  readonly cacheFigures: () => Promise<CacheFigures>;
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

/**
 * CHOICE(paused-player): a player of MPEG-TS that is paused reads nothing either, but keeps its connection. So long its
 * session lives; a player that was switched off meanwhile is told by the network much earlier.
 */
const PAUSED_STREAM_MS = 3 * 3_600_000;

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
  readonly #ended = new AbortController();
  #opened: Promise<SegmentSource>;
  #source: SegmentSource | undefined;
  #playing: Promise<void>;
  #file: ContentFile | undefined;
  #status: SessionInfo["status"] = "starting";
  #problem: Error | undefined;
  #idleMs: number;
  #lastUse: Instant;
  #busy = 0;
  #openStreams = 0;
  #cancelIdle: () => void = () => {};
  #lastIndex = -1;

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
    this.#idleMs = access.settings.sessionIdleMs;
    this.#lastUse = access.clock.now();
    this.#watchIdle(this.#idleMs);
    this.#opened = this.#open();
    this.#playing = this.#firstSegment();
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

  get hasFailed(): boolean {
    return this.#status === "failed";
  }

  get isBusy(): boolean {
    return this.#busy > 0;
  }

  get lastUse(): Instant {
    return this.#lastUse;
  }

  async settle(withinMs: number): Promise<boolean> {
    return orLater(this.#playing, this.#parts.access.clock, withinMs);
  }

  touch(): void {
    this.#lastUse = this.#parts.access.clock.now();
  }

  setIdleMs(idleMs: number): void {
    this.#idleMs = idleMs;
    this.touch();
    this.#cancelIdle();
    if (!this.#ended.signal.aborted) this.#watchIdle(idleMs);
  }

  get isLive(): boolean {
    return this.#source?.isLive ?? false;
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
      live: this.#source?.livePosition?.(),
      variants: this.#source?.variants ?? [],
      variantIndex: this.#source?.variantIndex ?? -1,
      cache,
    };
  }

  manifest(base: string, rendition: ManifestRendition, asker?: AbortSignal): Promise<string> {
    return this.#for(asker, async (signal) => {
      const source = await orAborted(this.#opened, signal);
      const { infohash, key, ordinal = 0 } = this;
      const place = { base, session: { infohash, key, ordinal } };
      return this.#patiently((stop) => source.manifest(place, rendition, stop), signal);
    });
  }

  async transportStream(asker?: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    const { access } = this.#parts;
    await this.#for(asker, (signal) =>
      orAborted(orLater(this.#playing, access.clock, HELD_HEADERS_MS), signal),
    );
    this.#openStreams++;
    return transportStream({
      clock: access.clock,
      first: async (signal) => (await this.#opened).first(signal),
      reach: (index, signal) => this.#use(() => this.#reach(index, signal)),
      segment: (index, signal) => this.#use(() => this.#segment("ts", index, 0, signal)),
      touched: () => this.touch(),
      closed: () => {
        this.#openStreams--;
        this.setIdleMs(this.#idleMs);
      },
      ended: this.#ended.signal,
    });
  }

  /** The segment of this name; `index` is its number within the session. */
  namedSegment(name: SegmentName, index: number, asker?: AbortSignal): Promise<SegmentBytes> {
    return this.#for(asker, (either) =>
      this.#requests.run(either, (signal) => this.#namedSegment(name, index, signal)),
    );
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
    this.#cancelIdle();
    if (this.wantsEvents) this.#events.push({ name: "download_stopped", params: { reason: reason.message } });
    this.#events.close();
    this.#ended.abort(reason);
    this.#parts.hold.release();
    this.#parts.ended(this, reason);
  }

  async #namedSegment(name: SegmentName, number: number, signal: AbortSignal): Promise<SegmentBytes> {
    const source = await orAborted(this.#opened, signal);
    const index = await source.find(name.kind, number, signal, name.track);
    const bytes = await this.#segment(name.kind, index, name.track, signal);
    if (name.track === 0 && (name.kind === "ts" || name.kind === "m4s"))
      this.#prepareNext(source, name.kind, index);
    return bytes;
  }

  async #open(): Promise<SegmentSource> {
    const { access, hold, request } = this.#parts;
    const { transfer } = hold;
    const { signal } = this.#ended;
    await awaitFiles(access, transfer, { signal });
    this.#file ??= this.#chooseFile();
    const file = this.#file;
    const open = async (stop: AbortSignal) => {
      if (transfer.segmentSource) return suited(await transfer.segmentSource(stop, request), request);
      const media = await transfer.media(file.index, request.audioLanguage, stop);
      return new FilmSource(transfer.infohash, file, media, request);
    };
    this.#source = await whileBytesCome(access, transfer, open, signal);
    return this.#source;
  }

  #chooseFile(): ContentFile {
    const { hold, request, selectedFiles } = this.#parts;
    return chooseFile(hold.transfer, request.fileIndex, selectedFiles);
  }

  /** A player that starts reads the first segment: having it is what `dl` tells. */
  #firstSegment(): Promise<void> {
    const { signal } = this.#ended;
    const playing = this.#opened.then(async (source) => {
      const first = await this.#patiently((stop) => source.first(stop), signal);
      const index = await this.#reach(first, signal);
      if (index === undefined) throw new SluiceError("broken_media", "there is nothing to play");
      if (source.container === "fmp4") await this.#segment("mp4", index, 0);
      await this.#segment(source.container === "ts" ? "ts" : "m4s", index, 0);
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
    this.#playing = this.#firstSegment();
  }

  #failed(thrown: unknown): void {
    if (this.#ended.signal.aborted) return;
    this.#status = "failed";
    this.#problem = thrown instanceof Error ? thrown : new Error(String(thrown));
    this.#parts.log.warn("a session cannot play", { infohash: this.infohash, reason: this.#problem.message });
  }

  /** `signal` fires at the latest when the session ends. */
  async #segment(
    kind: SegmentName["kind"],
    index: number,
    track: number,
    signal: AbortSignal = this.#ended.signal,
  ): Promise<SegmentBytes> {
    const { segments } = this.#parts;
    const source = await orAborted(this.#opened, signal);
    const key = segmentKey(source.name, kind, index, track);
    const make = (end: AbortSignal) => source.make(kind, index, track, end);
    return segments.held(key) ?? segments.get(key, (stop) => this.#patiently(make, stop), signal);
  }

  async #reach(index: number, signal: AbortSignal): Promise<number | undefined> {
    const source = await orAborted(this.#opened, signal);
    return this.#patiently((stop) => source.reach(index, stop), signal);
  }

  /** Waits for what needs bytes, for as long as they come: a start shorter than a film that has begun. */
  #patiently<T>(work: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T> {
    const { access, hold } = this.#parts;
    const patience = this.#status === "playing" ? onceBegun(access) : access;
    return whileBytesCome(patience, hold.transfer, work, signal);
  }

  /** A player that takes segments in order finds the next one made. One at a time; a player that jumps gets none. */
  #prepareNext(source: SegmentSource, kind: "ts" | "m4s", index: number): void {
    const inOrder = index === this.#lastIndex + 1;
    this.#lastIndex = index;
    if (!inOrder || source.isLive) return;
    const next = async () => {
      if ((await source.reach(index + 1, this.#ended.signal)) !== undefined)
        await this.#segment(kind, index + 1, 0);
    };
    next().catch((thrown) => {
      // Whoever asks for it hears the reason then.
      this.#parts.log.debug("a segment could not be made ahead", {
        index: index + 1,
        reason: String(thrown),
      });
    });
  }

  /** Does what is asked; its signal fires when whoever asked has gone, and when the session ends. */
  #for<T>(asker: AbortSignal | undefined, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return this.#use(() => underEither(asker, this.#ended.signal, work));
  }

  async #use<T>(work: () => Promise<T>): Promise<T> {
    this.#ended.signal.throwIfAborted();
    this.#tryAgain();
    this.#busy++;
    this.touch();
    try {
      return await work();
    } finally {
      this.#busy--;
      this.touch();
    }
  }

  #progress(): number {
    if (this.#status === "playing") return 100;
    if (!this.#file) return 0;
    const needed = Math.max(1, Math.min(HEAD_BYTES, this.#file.size));
    return Math.min(99, Math.floor((100 * this.#parts.hold.transfer.headBytes(this.#file.index)) / needed));
  }

  /** One timer, set again for the rest of the time whenever it fires early. */
  #watchIdle(afterMs: number): void {
    const { clock } = this.#parts.access;
    this.#cancelIdle = clock.at(after(clock.now(), afterMs), () => {
      const idleMs = this.isBusy ? 0 : clock.now() - this.#lastUse;
      const limitMs = this.#openStreams > 0 ? Math.max(this.#idleMs, PAUSED_STREAM_MS) : this.#idleMs;
      if (idleMs < limitMs) return this.#watchIdle(limitMs - idleMs);
      this.end(new SluiceError("unknown_session", "nobody has read the session for its idle time"));
    });
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
