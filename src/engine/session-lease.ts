import { after, type Instant } from "../base/time.ts";
import type { Clock } from "../runtime/contract.ts";

/**
 * CHOICE(paused-player): a player of MPEG-TS that is paused reads nothing either, but keeps its connection. So long its
 * session lives; a player that was switched off meanwhile is told by the network much earlier.
 */
const PAUSED_STREAM_MS = 3 * 3_600_000;

/** How long a session lives: renewed by each use, and run out when there was none for its idle time. */
export class SessionLease {
  readonly #clock: Clock;
  readonly #ranOut: () => void;
  #idleMs: number;
  #lastUse: Instant;
  #busy = 0;
  #openStreams = 0;
  #isOver = false;
  #cancelTimer: () => void = () => {};

  /** `ranOut` is called once, unless the lease is ended before. */
  constructor(clock: Clock, idleMs: number, ranOut: () => void) {
    this.#clock = clock;
    this.#ranOut = ranOut;
    this.#idleMs = idleMs;
    this.#lastUse = clock.now();
    this.#watch(idleMs);
  }

  /** Whether something is being done for the player now. */
  get isBusy(): boolean {
    return this.#busy > 0;
  }

  get lastUse(): Instant {
    return this.#lastUse;
  }

  /** Renews it. */
  touch(): void {
    this.#lastUse = this.#clock.now();
  }

  /** Sets how long it lasts without use, from now on. */
  setIdleMs(idleMs: number): void {
    this.#idleMs = idleMs;
    this.touch();
    this.#cancelTimer();
    if (!this.#isOver) this.#watch(idleMs);
  }

  /** Does not run out while `work` goes on. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    this.#busy++;
    this.touch();
    try {
      return await work();
    } finally {
      this.#busy--;
      this.touch();
    }
  }

  /** A stream is open from now until what is returned is called: the player may pause it for long. */
  openStream(): () => void {
    this.#openStreams++;
    return () => {
      this.#openStreams--;
      this.setIdleMs(this.#idleMs);
    };
  }

  /** Nothing runs out any more. */
  end(): void {
    this.#isOver = true;
    this.#cancelTimer();
  }

  /** One timer, set again for the rest of the time whenever it fires early. */
  #watch(afterMs: number): void {
    this.#cancelTimer = this.#clock.at(after(this.#clock.now(), afterMs), () => {
      const idleMs = this.isBusy ? 0 : this.#clock.now() - this.#lastUse;
      const limitMs = this.#openStreams > 0 ? Math.max(this.#idleMs, PAUSED_STREAM_MS) : this.#idleMs;
      if (idleMs < limitMs) this.#watch(limitMs - idleMs);
      else this.#ranOut();
    });
  }
}
