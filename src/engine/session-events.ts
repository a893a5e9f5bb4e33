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

  /** The next event, or undefined after `withinMs`. Only one waits at a time: a second call answers the first. */
  next(withinMs: number): Promise<SessionEvent | undefined> {
    this.#answer?.(undefined);
    const queued = this.#queue.shift();
    if (queued || this.#isClosed) return Promise.resolve(queued);
    return new Promise((resolve) => {
      const cancel = this.#clock.at(after(this.#clock.now(), withinMs), () => this.#answer?.(undefined));
      this.#answer = (event) => {
        this.#answer = undefined;
        cancel();
        resolve(event);
      };
    });
  }

  /** Answers whoever waits; nothing more will come. */
  close(): void {
    this.#isClosed = true;
    this.#answer?.(undefined);
  }
}
