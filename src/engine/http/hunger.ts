import { SluiceError } from "../../base/errors.ts";
import { after, type Instant } from "../../base/time.ts";
import type { Clock } from "../../runtime/contract.ts";
import { type Deferred, deferred } from "../deferred.ts";
import { orAborted } from "../segment-cache.ts";

/**
 * Whether anybody wants more of a stream that has no end. Whoever waits does; whoever was here a moment ago may come back,
 * as HLS players do. The work begins with the first, pauses where nobody wants more, and is ended after `lingerMs` in which
 * nobody came; then it begins anew with the next.
 */
export class Hunger {
  readonly #clock: Clock;
  readonly #lingerMs: number;
  readonly #work: (signal: AbortSignal) => Promise<void>;
  #waiting = 0;
  #lastVisit: Instant;
  #running: AbortController | undefined;
  #meal: Deferred<void> = deferred();
  #change: Deferred<void> = deferred();
  #cancelTimer: (() => void) | undefined;
  #ended: { readonly reason: unknown } | undefined;

  constructor(clock: Clock, lingerMs: number, work: (signal: AbortSignal) => Promise<void>) {
    this.#clock = clock;
    this.#lingerMs = lingerMs;
    this.#work = work;
    this.#lastVisit = clock.now();
  }

  /** Whether somebody waits now. */
  get isWaitedFor(): boolean {
    return this.#waiting > 0;
  }

  /** Waits for the next that comes, or for the end of the work. */
  async wait(signal: AbortSignal): Promise<void> {
    if (this.#ended) throw this.#ended.reason;
    const meal = this.#meal.promise;
    this.#waiting++;
    this.visit();
    this.#begin();
    try {
      await orAborted(meal, signal);
    } finally {
      this.#waiting--;
      this.visit();
    }
  }

  /** Somebody was here, and may come back. */
  visit(): void {
    this.#lastVisit = this.#clock.now();
    const change = this.#change;
    this.#change = deferred();
    change.resolve();
  }

  /** Something came, or nothing will: those who wait look at it. */
  serve(): void {
    const meal = this.#meal;
    this.#meal = deferred();
    meal.resolve();
  }

  /** For the work: resolves when `isWanted` says so. */
  async until(isWanted: () => boolean, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    while (!isWanted()) await orAborted(this.#change.promise, signal);
  }

  /** The work ends, and is not begun again. */
  end(reason: unknown): void {
    this.#ended = { reason };
    this.#cancelTimer?.();
    this.#running?.abort(reason);
    this.serve();
  }

  #begin(): void {
    if (this.#running) return;
    const running = new AbortController();
    this.#running = running;
    this.#cancelTimer = this.#watch(this.#lingerMs);
    // The work keeps what went wrong for those who wait.
    this.#work(running.signal).finally(() => {
      this.#running = undefined;
      this.#cancelTimer?.();
      this.serve();
    });
  }

  #watch(afterMs: number): () => void {
    return this.#clock.at(after(this.#clock.now(), afterMs), () => {
      const quietMs = this.#waiting > 0 ? 0 : this.#clock.now() - this.#lastVisit;
      if (quietMs < this.#lingerMs) this.#cancelTimer = this.#watch(this.#lingerMs - quietMs);
      else this.#running?.abort(new SluiceError("cancelled", "nobody reads the stream any more"));
    });
  }
}
