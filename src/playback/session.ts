import { orAborted, withLinkedAbort } from "../async/abort.ts";
import { resolvesWithin } from "../async/sleep.ts";
import { SluiceError, type SluiceErrorCode } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import type { ByteRange } from "../base/range.ts";
import type { UnixSeconds } from "../base/time.ts";
import type { CacheFigures, ContentFile, Hold } from "../transfer/contract.ts";
import type { SegmentBytes, SegmentName, SegmentSource } from "../transfer/segment-source.ts";
import { type Access, chooseFile, startProgress } from "./access.ts";
import { bodyStream } from "./body-stream.ts";
import type {
  ManifestReload,
  PlaybackRequest,
  PlayerBody,
  RemuxForPlayer,
  Session,
  SessionEvent,
  SessionInfo,
  SessionRendition,
} from "./contract.ts";
import type { ConvertedSources } from "./converted-source.ts";
import { explainBuffering, playbackFacts } from "./diagnosis/buffering.ts";
import type { Buffering } from "./diagnosis/contract.ts";
import { openFilm } from "./film-source.ts";
import { HELD_HEADERS_MS } from "./guarded-stream.ts";
import { LiveVariants } from "./live-variants.ts";
import { prefetchNext } from "./next-files.ts";
import { type PlayerReads, playerMedia } from "./player-media.ts";
import type { SegmentCache } from "./segment-cache.ts";
import { SessionEvents } from "./session-events.ts";
import { SessionLease } from "./session-lease.ts";
import { cannotSeek, SessionLive } from "./session-live.ts";
import { SessionMedia } from "./session-media.ts";
import { checkStream, isKnownLive, manifestUrls, pendingRequests } from "./session-request.ts";
import { SessionWaits } from "./session-waits.ts";
import { awaitFiles, playingTimeouts, withDataTimeout } from "./timeouts.ts";
import { transportStream } from "./ts-stream.ts";

/** Dependencies of {@link PlayerSession}. */
export interface SessionDependencies {
  readonly access: Access;
  readonly segments: SegmentCache;
  /** The cache for live streams. */
  readonly liveSegments: SegmentCache;
  readonly converted: ConvertedSources;
  readonly cacheFigures: () => Promise<CacheFigures>;
  readonly proxyProblem: () => string | undefined;
  readonly log: Log;
  readonly hold: Hold;
  readonly request: PlaybackRequest;
  readonly selectedFiles: readonly number[] | undefined;
  readonly key: string;
  readonly id: string;
  /** The content comes from a web server, without peers. */
  readonly isDirect: boolean;
  /** HLS only: distinguishes the sessions of one transfer in segment names; see `segmentNumber`. */
  readonly ordinal: number | undefined;
  /** Called once, when the session has ended. */
  ended(session: PlayerSession, reason: SluiceError): void;
}

/** A failure of one of these kinds is tried again at the next request. */
const RETRIABLE: ReadonlySet<SluiceErrorCode> = new Set(["no_peers", "metadata_timeout", "start_timeout"]);

/** One player's lease on one file of a transfer. */
export class PlayerSession implements Session {
  readonly infohash: Infohash;
  readonly key: string;
  readonly id: string;
  readonly ordinal: number | undefined;
  readonly output: "ts" | "hls";
  readonly isDirect: boolean;
  /** Sequence number of its latest start request: the newest start of a player wins. */
  order = 0;
  clientSessionId: number;
  readonly events: SessionEvents;
  readonly #dependencies: SessionDependencies;
  readonly #requests: ReturnType<typeof pendingRequests>;
  readonly #live: SessionLive;
  readonly #waits: SessionWaits;
  readonly #lease: SessionLease;
  readonly #ended = new AbortController();
  readonly #variants: LiveVariants;
  #opened: Promise<SessionMedia>;
  /** What the session plays; undefined until it is open. */
  source: SegmentSource | undefined;
  #playing: Promise<void>;
  /** The start that a player has waited for already; the next one gets its headers at once. */
  #awaited: Promise<void> | undefined;
  #file: ContentFile | undefined;
  #variantIndex: number | undefined;
  #status: SessionInfo["status"] = "starting";
  #problem: Error | undefined;

  constructor(dependencies: SessionDependencies) {
    const { hold, request, access } = dependencies;
    this.#dependencies = dependencies;
    this.infohash = hold.transfer.infohash;
    this.key = dependencies.key;
    this.id = dependencies.id;
    this.ordinal = dependencies.ordinal;
    this.output = request.output;
    this.isDirect = dependencies.isDirect;
    this.#variantIndex = request.variantIndex;
    this.clientSessionId = request.clientSessionId;
    this.#live = new SessionLive(request);
    this.#requests = pendingRequests(request);
    // If the files are known, the file is chosen now: the next start of this player must find the same.
    if (hold.transfer.files.length > 0) this.#file = this.#chooseFile();
    this.events = new SessionEvents(access.clock, request, hold.transfer.channel);
    this.#waits = new SessionWaits(access.clock);
    this.#lease = new SessionLease(access.clock, access.settings.sessionIdleMs, () =>
      this.end(new SluiceError("unknown_session", "the session received no request within its idle time")),
    );
    this.#variants = new LiveVariants({ ...dependencies, ended: this.#ended.signal });
    this.#opened = this.#open();
    this.#playing = this.#start();
  }

  get wantsEvents(): boolean {
    return this.events.isWanted;
  }

  get request(): PlaybackRequest {
    return this.#dependencies.request;
  }

  /** The player's `pid`; undefined if it sent none. */
  get playerId(): string | undefined {
    return this.#dependencies.request.playerId;
  }

  /** Index of the chosen file; before the choice, the requested index or -1. */
  get fileIndex(): number {
    return this.#file?.index ?? this.#dependencies.request.fileIndex ?? -1;
  }

  /** Returns false if the session has failed, or if `transfer` has replaced its transfer. */
  isUsable(transfer: Hold["transfer"]): boolean {
    return this.#status !== "failed" && this.#dependencies.hold.transfer === transfer;
  }

  get lease(): Pick<SessionLease, "isPlayed" | "isConnected" | "lastUse" | "startedAt"> {
    return this.#lease;
  }

  /** The transfer that the session holds. */
  get transfer(): Hold["transfer"] {
    return this.#dependencies.hold.transfer;
  }

  async settle(withinMs: number): Promise<boolean> {
    return resolvesWithin(this.#playing, this.#dependencies.access.clock, withinMs);
  }

  get isPlayed(): boolean {
    return this.#lease.isPlayed;
  }

  touch(): void {
    this.#lease.touch();
  }

  setIdleMs(idleMs: number): void {
    this.#lease.setIdleMs(idleMs);
  }

  get isLive(): boolean {
    return this.source?.isLive ?? isKnownLive(this.transfer);
  }

  liveSeek(to: UnixSeconds | -1): void {
    if (!this.source) throw cannotSeek("the stream has not started yet");
    this.#live.seek(to, this.source);
  }

  async setStream(index: number): Promise<void> {
    checkStream(this.source, index);
    const opening = this.#open(index);
    (await opening).follow(await this.#opened);
    this.#opened = opening;
    this.#variantIndex = index;
  }

  async info(): Promise<SessionInfo> {
    return { ...this.state(), cache: await this.#dependencies.cacheFigures() };
  }

  /** What `info` returns, without the figures of the cache. */
  state(): Omit<SessionInfo, "cache"> {
    const { transfer } = this.#variants;
    return {
      status: this.#status,
      problem: this.#problem,
      progress: this.#status === "playing" ? 100 : startProgress(transfer, this.#file),
      totalProgress: this.#file ? transfer.progress(this.#file.index) : 0,
      fileIndex: this.#file?.index ?? -1,
      figures: transfer.figures,
      live: this.source && this.#live.position(this.source),
      buffering: this.buffering(),
      channel: transfer.channel?.state,
      variants: this.source?.variants ?? [],
      variantIndex: this.source?.variantIndex ?? -1,
    };
  }

  manifest(
    base: string,
    rendition: SessionRendition,
    requestSignal?: AbortSignal,
    reload: ManifestReload = {},
  ): Promise<string> {
    return this.#handle(requestSignal, async (signal) => {
      const media = await orAborted(this.#opened, signal);
      const place = { urls: manifestUrls(this, base), shiftMs: this.#live.shiftMs, ...reload };
      return media.manifest(place, rendition, signal);
    });
  }

  async awaitStart(requestSignal?: AbortSignal): Promise<void> {
    const { clock } = this.#dependencies.access;
    await this.#handle(requestSignal, (signal) => {
      const waitMs = this.#awaited === this.#playing ? 0 : HELD_HEADERS_MS;
      return orAborted(resolvesWithin(this.#playing, clock, waitMs), signal);
    });
    this.#awaited = this.#playing;
  }

  async transportStream(remux: RemuxForPlayer, requestSignal?: AbortSignal, range?: ByteRange) {
    await this.awaitStart(requestSignal);
    const { clock } = this.#dependencies.access;
    return transportStream({
      clock,
      ended: this.#ended.signal,
      open: async (signal, pulled) => {
        const use: PlayerReads["use"] = (work) => this.#use(work);
        const wait: PlayerReads["wait"] = (work, stop) => use(() => this.#withTimeout(work, stop));
        const reads = { clock, signal, range, pulled, use, wait };
        const media = await playerMedia(() => this.#opened, this.#live, reads);
        return { stream: remux(media), release: media.release };
      },
      hasLength: range !== undefined,
      touched: () => this.touch(),
      closed: this.#lease.openStream(),
    });
  }

  get body(): PlayerBody | undefined {
    const body = this.source?.body;
    if (!body) return undefined;
    const open = (range: ByteRange) =>
      bodyStream(body.reader(range), {
        ended: this.#ended.signal,
        read: (work) => this.#use(() => this.#withTimeout(work, this.#ended.signal)),
        closed: this.#lease.openStream(),
      });
    return { mime: body.mime, size: body.size, open };
  }

  get streamBytes(): number | undefined {
    return this.source?.streamBytes;
  }

  /** Returns the segment with this name; `index` is its number within the session. */
  namedSegment(name: SegmentName, index: number, requestSignal?: AbortSignal): Promise<SegmentBytes> {
    return this.#handle(requestSignal, (either) =>
      this.#requests.run(either, async (signal) =>
        (await orAborted(this.#opened, signal)).named(name, index, signal),
      ),
    );
  }

  /** Why the player waits; undefined if it does not. */
  buffering(): Buffering | undefined {
    const { access, proxyProblem } = this.#dependencies;
    if (this.#status === "failed") return undefined;
    // HLS players poll the manifest of a silent live stream, so no single request waits for long.
    const noDataSince = this.source && this.#live.noDataSince(this.source);
    const explain = (waitingMs: number) =>
      explainBuffering(
        playbackFacts(this.#variants.transfer, {
          waitingMs,
          neededBytesPerSecond: this.source?.bytesPerSecond,
          downloadLimit: access.settings.downloadLimit,
          proxyProblem: proxyProblem(),
          unixMs: 1000 * access.clock.unixSeconds(),
        }),
      );
    return this.#waits.buffering(this.#lease.lastUse, explain, noDataSince);
  }

  nextEvent(withinMs: number, requestSignal?: AbortSignal): Promise<SessionEvent | undefined> {
    return this.events.nextEvent(withinMs, requestSignal);
  }

  stop(): void {
    this.end(new SluiceError("session_stopped", "the session was stopped"));
  }

  /** Ends the session: pending requests fail with `reason`, open streams end. */
  end(reason: SluiceError): void {
    if (this.#ended.signal.aborted) return;
    this.#lease.end();
    this.events.push({ name: "download_stopped", params: { reason: reason.message } });
    this.events.close();
    this.#ended.abort(reason);
    this.#dependencies.hold.release();
    this.#dependencies.ended(this, reason);
  }

  async #open(variantIndex = this.#variantIndex): Promise<SessionMedia> {
    const { access, hold, request } = this.#dependencies;
    const { transfer } = hold;
    const { signal } = this.#ended;
    const wasLive = this.isLive;
    await this.#waits.during(() => awaitFiles(access, transfer, { signal }));
    this.#file ??= this.#chooseFile();
    const file = this.#file;
    const open = async (stop: AbortSignal) => {
      const chosen = { ...request, variantIndex };
      if (!transfer.segmentSource) return openFilm(transfer, file, request, stop);
      return this.#variants.of(await transfer.segmentSource(stop, chosen), variantIndex, stop);
    };
    this.source = await this.#waits.during(() => withDataTimeout(access, transfer, open, signal));
    // The response to the start may have reported something else.
    if (this.isLive !== wasLive)
      this.events.push({ name: "live_changed", params: { is_live: this.isLive ? 1 : 0 } });
    return new SessionMedia(this.source, {
      ...this.#dependencies,
      clock: access.clock,
      ended: signal,
      withTimeout: (work, stop) => this.#withTimeout(work, stop),
    });
  }

  #chooseFile(): ContentFile {
    const { hold, request, selectedFiles } = this.#dependencies;
    return chooseFile(hold.transfer, request.fileIndex, selectedFiles);
  }

  /** Waits until playback can start; then `stat` reports `dl`. */
  #start(): Promise<void> {
    const playing = this.#opened.then(async (media) => {
      await media.first(this.output === "hls" ? { urls: manifestUrls(this, "") } : undefined);
      this.#status = "playing";
      this.events.push({ name: "download_started", params: {} });
      const { access, hold, request } = this.#dependencies;
      prefetchNext(access.clock, hold.transfer, this.fileIndex, request.nextFiles, this.#ended.signal);
    });
    playing.catch((thrown) => this.#fail(thrown));
    return playing;
  }

  /** Starts again after a failure that may have passed, such as a swarm without peers. */
  #retry(): void {
    if (!(this.#problem instanceof SluiceError) || !RETRIABLE.has(this.#problem.code)) return;
    this.#status = "starting";
    this.#problem = undefined;
    this.#opened = this.#open();
    this.#playing = this.#start();
  }

  #fail(thrown: unknown): void {
    if (this.#ended.signal.aborted) return;
    this.#status = "failed";
    this.#problem = thrown instanceof Error ? thrown : new Error(String(thrown));
    this.events.push({ name: "error", params: { message: this.#problem.message } });
    this.#dependencies.log.warn("session cannot play", {
      infohash: this.infohash,
      reason: this.#problem.message,
    });
  }

  /** Runs work that needs bytes; fails if no bytes arrive for too long. The limit of a start is shorter. */
  #withTimeout<T>(work: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T> {
    const { access } = this.#dependencies;
    const timeouts = this.#status === "playing" ? playingTimeouts(access) : access;
    return this.#waits.during(() => withDataTimeout(timeouts, this.#variants.transfer, work, signal));
  }

  /** Runs the work of a request; its signal fires when the client disconnects or the session ends. */
  #handle<T>(requestSignal: AbortSignal | undefined, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return this.#use(() => withLinkedAbort(requestSignal, this.#ended.signal, work));
  }

  /** Runs work on behalf of the player: renews the lease, retries a failed start. */
  async #use<T>(work: () => Promise<T>): Promise<T> {
    this.#ended.signal.throwIfAborted();
    this.#retry();
    try {
      return await this.#lease.during(work);
    } catch (thrown) {
      // The transfer was stopped by its owner, such as a broadcast: the next start opens a new one.
      if (thrown instanceof SluiceError && thrown.code === "session_stopped") this.end(thrown);
      throw thrown;
    }
  }
}
