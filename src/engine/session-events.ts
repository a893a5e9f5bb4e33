import { after } from "../base/time.ts";
import type { Clock } from "../runtime/contract.ts";
import type { SessionEvent } from "./engine.ts";

/** A controller that never asks for its events loses the oldest. */
const QUEUE_LIMIT = 16;

/** The events of one session, fetched one at a time by a long poll. */
export class SessionEvents {
  readonly #clock: Clock;
  readonly #queue: SessionEvent[] = [];
  #answer: ((event: SessionEvent | undefined) => void) | undefined;
  #isClosed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  push(event: SessionEvent): void {
    if (this.#answer) this.#answer(event);
    else this.#queue.push(event);
    if (this.#queue.length > QUEUE_LIMIT) this.#queue.shift();
  }

  /**
   * The next event, or undefined after `withinMs` and when the signal fires: an event must not go to somebody who has
   * gone. Only one waits at a time: a second call answers the first.
   */
  next(withinMs: number, signal?: AbortSignal): Promise<SessionEvent | undefined> {
    this.#answer?.(undefined);
    if (signal?.aborted) return Promise.resolve(undefined);
    const queued = this.#queue.shift();
    if (queued || this.#isClosed) return Promise.resolve(queued);
    return new Promise((resolve) => {
      const nothing = () => answer(undefined);
      const cancel = this.#clock.at(after(this.#clock.now(), withinMs), nothing);
      const answer = (event: SessionEvent | undefined) => {
        if (this.#answer !== answer) return;
        this.#answer = undefined;
        cancel();
        signal?.removeEventListener("abort", nothing);
        resolve(event);
      };
      this.#answer = answer;
      signal?.addEventListener("abort", nothing, { once: true });
    });
  }

  /** Answers whoever waits; nothing more will come. */
  close(): void {
    this.#isClosed = true;
    this.#answer?.(undefined);
  }
}
