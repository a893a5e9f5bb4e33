import { orAborted } from "../async/abort.ts";
import { resolvesWithin } from "../async/sleep.ts";
import { SluiceError } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import type { ByteRange } from "../base/range.ts";
import type { Instant, UnixSeconds } from "../base/time.ts";
import { NO_FIGURES } from "../protocol/swarm/figures.ts";
import type { Clock } from "../runtime/contract.ts";
import type { CacheFigures } from "../transfer/contract.ts";
import type { ManifestRendition } from "../transfer/segment-source.ts";
import type {
  ManifestReload,
  PlaybackRequest,
  PlayerBody,
  RemuxForPlayer,
  Session,
  SessionEvent,
  SessionInfo,
} from "./contract.ts";
import type { Buffering } from "./diagnosis/contract.ts";

/** Options of {@link WaitingStart}. */
export interface WaitingStartOptions {
  readonly request: PlaybackRequest;
  readonly clock: Clock;
  readonly since: Instant;
  readonly infohash: Infohash;
  readonly key: string;
  readonly id: string;
  /** The session, once the content is known. */
  readonly started: Promise<Session>;
  readonly cacheFigures: () => Promise<CacheFigures>;
  /** Cancels the start, or stops the session that it began. */
  stop(): void;
}

/** A session whose content is not known yet: a web server or the DHT has not answered. Media requests wait for it. */
export class WaitingStart implements Session {
  readonly infohash: Infohash;
  readonly key: string;
  readonly id: string;
  readonly output: "ts" | "hls";
  readonly clientSessionId: number;
  readonly wantsEvents: boolean;
  readonly isDirect = false;
  readonly isLive = false;
  readonly streamBytes: number | undefined = undefined;
  readonly #options: WaitingStartOptions;
  #started: Session | undefined;
  #problem: Error | undefined;

  constructor(options: WaitingStartOptions) {
    const { request, started } = options;
    this.#options = options;
    this.infohash = options.infohash;
    this.key = options.key;
    this.id = options.id;
    this.output = request.output;
    this.clientSessionId = request.clientSessionId;
    this.wantsEvents = request.wantsEvents || request.wantsStops === true;
    started.then(
      (session) => {
        this.#started = session;
      },
      (thrown) => {
        this.#problem = thrown instanceof Error ? thrown : new Error(String(thrown));
      },
    );
  }

  /** A player waits for the start. */
  get isPlayed(): boolean {
    return this.#started?.isPlayed ?? this.#problem === undefined;
  }

  get body(): PlayerBody | undefined {
    return this.#started?.body;
  }

  async settle(withinMs: number): Promise<boolean> {
    const { started, clock } = this.#options;
    const until = clock.now() + withinMs;
    if (!(await resolvesWithin(started, clock, withinMs))) return false;
    return (await started).settle(Math.max(0, until - clock.now()));
  }

  touch(): void {}

  liveSeek(_: UnixSeconds | -1): void {
    throw new SluiceError("bad_parameter", "liveseek: the stream has not started yet");
  }

  async setStream(): Promise<void> {
    throw new SluiceError("bad_parameter", "set_stream: the stream has not started yet");
  }

  setIdleMs(idleMs: number): void {
    this.#options.started.then(
      (session) => session.setIdleMs(idleMs),
      () => {},
    );
  }

  async info(): Promise<SessionInfo> {
    return {
      status: this.#problem ? "failed" : "starting",
      problem: this.#problem,
      progress: 0,
      totalProgress: 0,
      fileIndex: -1,
      figures: NO_FIGURES,
      live: undefined,
      buffering: this.#problem ? undefined : this.#buffering(),
      variants: [],
      variantIndex: -1,
      cache: await this.#options.cacheFigures(),
    };
  }

  async manifest(
    base: string,
    rendition: ManifestRendition,
    signal?: AbortSignal,
    reload?: ManifestReload,
  ): Promise<string> {
    return (await this.#session(signal)).manifest(base, rendition, signal, reload);
  }

  async awaitStart(signal?: AbortSignal): Promise<void> {
    return (await this.#session(signal)).awaitStart(signal);
  }

  async transportStream(
    remux: RemuxForPlayer,
    signal?: AbortSignal,
    range?: ByteRange,
  ): Promise<ReadableStream<Uint8Array>> {
    return (await this.#session(signal)).transportStream(remux, signal, range);
  }

  async nextEvent(withinMs: number, signal?: AbortSignal): Promise<SessionEvent | undefined> {
    const { started, clock } = this.#options;
    const until = clock.now() + withinMs;
    if (!(await orAborted(resolvesWithin(started, clock, withinMs), signal))) return undefined;
    return (await started).nextEvent(Math.max(0, until - clock.now()), signal);
  }

  stop(): void {
    this.#options.stop();
  }

  #session(signal: AbortSignal | undefined): Promise<Session> {
    return orAborted(this.#options.started, signal);
  }

  #buffering(): Buffering {
    const { request, clock, since } = this.#options;
    const seconds = Math.round((clock.now() - since) / 100) / 10;
    const isUrl = request.selector.kind === "url";
    const who = isUrl ? "The server of this URL" : "The DHT or a server that the link names";
    return {
      code: isUrl ? "server" : "no_metadata",
      sentence: `${who} has not answered for ${Math.round(seconds)} s, so the content is not known yet.`,
      numbers: { waiting_seconds: seconds },
    };
  }
}
