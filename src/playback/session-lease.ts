import { after, type Instant, type UnixSeconds } from "../base/time.ts";
import type { Clock } from "../runtime/contract.ts";

/**
 * CHOICE(paused-player): a paused MPEG-TS player reads nothing but keeps its connection, so its session lives this long. If
 * the player is switched off meanwhile, the network reports that much earlier.
 */
const PAUSED_STREAM_MS = 3 * 3_600_000;

/**
 * CHOICE(closed-stream): an MPEG-TS player that closed its connection has left, unless it opens another one within this time, as
 * after a seek. A client that polls `stat`, or that has set an idle time, keeps the session.
 */
const CLOSED_STREAM_MS = 5_000;

/** A player of HLS requests something at least this often; a session that was read earlier has no player for the moment. */
const HLS_PAUSE_MS = 30_000;
/** If slots run short, a stream that was not read for this long counts as abandoned. */
const ABANDONED_STREAM_MS = 10 * 60_000;

/** The lifetime of a session: renewed by each use, expired after the idle time without any. */
export class SessionLease {
  readonly #clock: Clock;
  readonly #expired: () => void;
  readonly startedAt: UnixSeconds;
  #idleMs: number;
  #lastUse: Instant;
  #lastRead: Instant | undefined;
  #busy = 0;
  #openStreams = 0;
  #hasClosedStream = false;
  /** True if the client has set the idle time. */
  #isIdleSet = false;
  #isOver = false;
  #cancelTimer: () => void = () => {};

  /** Calls `expired` once, unless the lease is ended before. */
  constructor(clock: Clock, idleMs: number, expired: () => void) {
    this.#clock = clock;
    this.#expired = expired;
    this.#idleMs = idleMs;
    this.#lastUse = clock.now();
    this.startedAt = clock.unixSeconds();
    this.#watch(idleMs);
  }

  /** True if a player reads the session: a request is in progress, a stream is open, or HLS was read a moment ago. */
  get isPlayed(): boolean {
    if (this.#busy > 0) return true;
    const now = this.#clock.now();
    if (this.#openStreams > 0) return now - this.#lastUse < ABANDONED_STREAM_MS;
    // A player that has closed its stream has left, or opens it again. Otherwise all streams of the tuner would be in use after some quick
    // changes of the channel.
    if (this.#hasClosedStream) return false;
    return this.#lastRead !== undefined && now - this.#lastRead < HLS_PAUSE_MS;
  }

  /** True while a stream is open, even if its player is paused. */
  get isConnected(): boolean {
    return this.#openStreams > 0;
  }

  get lastUse(): Instant {
    return this.#lastUse;
  }

  /** Renews the lease. */
  touch(): void {
    this.#lastUse = this.#clock.now();
  }

  /** Sets the idle time and renews the lease. */
  setIdleMs(idleMs: number): void {
    this.#idleMs = idleMs;
    this.#isIdleSet = true;
    this.#renew();
  }

  /** Runs `work`; the lease does not expire meanwhile. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    this.#busy++;
    this.touch();
    try {
      return await work();
    } finally {
      this.#busy--;
      this.touch();
      this.#lastRead = this.#lastUse;
    }
  }

  /** Registers an open stream, which the player may pause for hours. Returns a function that must be called when it closes. */
  openStream(): () => void {
    this.#openStreams++;
    return () => {
      this.#openStreams--;
      this.#hasClosedStream = true;
      this.#renew();
    };
  }

  /** Ends the lease: `expired` is not called any more. */
  end(): void {
    this.#isOver = true;
    this.#cancelTimer();
  }

  #renew(): void {
    this.touch();
    this.#cancelTimer();
    if (!this.#isOver) this.#watch(this.#limitMs);
  }

  /** How long the session may be idle. */
  get #limitMs(): number {
    if (this.#openStreams > 0) return Math.max(this.#idleMs, PAUSED_STREAM_MS);
    if (this.#hasClosedStream && !this.#isIdleSet) return Math.min(this.#idleMs, CLOSED_STREAM_MS);
    return this.#idleMs;
  }

  /** One timer, set again for the remaining time if it fires early. */
  #watch(afterMs: number): void {
    this.#cancelTimer = this.#clock.at(after(this.#clock.now(), afterMs), () => {
      const idleMs = this.#busy > 0 ? 0 : this.#clock.now() - this.#lastUse;
      const limitMs = this.#limitMs;
      if (idleMs < limitMs) this.#watch(limitMs - idleMs);
      else this.#expired();
    });
  }
}
