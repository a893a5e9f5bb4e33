import { orAborted } from "../async/abort.ts";
import { type Deferred, deferred } from "../async/deferred.ts";
import { SluiceError } from "../base/errors.ts";
import { after, type Instant } from "../base/time.ts";
import type { Clock } from "../runtime/contract.ts";

/**
 * Runs the download of an endless stream only as long as clients read it. The work starts with the first waiting client,
 * can pause (`until`) when no client needs more, and is aborted after `lingerMs` without a client, because HLS players
 * come back between requests. The next client starts it again.
 */
export class ReadPressure {
  readonly #clock: Clock;
  readonly #lingerMs: number;
  readonly #work: (signal: AbortSignal) => Promise<void>;
  #waiting = 0;
  #lastRequest: Instant;
  #running: AbortController | undefined;
  #next: Deferred<void> = deferred();
  #change: Deferred<void> = deferred();
  #cancelTimer: (() => void) | undefined;
  #ended: { readonly reason: unknown } | undefined;

  constructor(clock: Clock, lingerMs: number, work: (signal: AbortSignal) => Promise<void>) {
    this.#clock = clock;
    this.#lingerMs = lingerMs;
    this.#work = work;
    this.#lastRequest = clock.now();
  }

  /** Whether a client is waiting for data now. */
  get hasWaiters(): boolean {
    return this.#waiting > 0;
  }

  /** Waits for the next data or for the end of the work. Rejects with the reason of `signal` or of `end`. */
  async wait(signal: AbortSignal): Promise<void> {
    if (this.#ended) throw this.#ended.reason;
    const next = this.#next.promise;
    this.#waiting++;
    this.touch();
    this.#start();
    try {
      await orAborted(next, signal);
    } finally {
      this.#waiting--;
      this.touch();
    }
  }

  /** Records a client request, which restarts the `lingerMs` timer. */
  touch(): void {
    this.#lastRequest = this.#clock.now();
    const change = this.#change;
    this.#change = deferred();
    change.resolve();
  }

  /** Wakes all waiting clients: data arrived or the stream ended. */
  notify(): void {
    const next = this.#next;
    this.#next = deferred();
    next.resolve();
  }

  /** Called by the work: resolves when `isWanted` returns true. It is evaluated again after each client request. */
  async until(isWanted: () => boolean, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    while (!isWanted()) await orAborted(this.#change.promise, signal);
  }

  /** Aborts the work now instead of after `lingerMs`; the next client starts it again. Does nothing while a client waits. */
  rest(): void {
    if (this.#waiting === 0) this.#running?.abort(new SluiceError("cancelled", "no client reads the stream"));
  }

  /** Aborts the work for good. Waiting and later clients get `reason`. */
  end(reason: unknown): void {
    this.#ended = { reason };
    this.#cancelTimer?.();
    this.#running?.abort(reason);
    this.notify();
  }

  #start(): void {
    if (this.#running) return;
    const running = new AbortController();
    this.#running = running;
    this.#cancelTimer = this.#watch(this.#lingerMs);
    // The work stores its error for the waiting clients.
    this.#work(running.signal).finally(() => {
      this.#running = undefined;
      this.#cancelTimer?.();
      this.notify();
    });
  }

  #watch(afterMs: number): () => void {
    return this.#clock.at(after(this.#clock.now(), afterMs), () => {
      const quietMs = this.#waiting > 0 ? 0 : this.#clock.now() - this.#lastRequest;
      if (quietMs < this.#lingerMs) this.#cancelTimer = this.#watch(this.#lingerMs - quietMs);
      else this.#running?.abort(new SluiceError("cancelled", "no client reads the stream"));
    });
  }
}
