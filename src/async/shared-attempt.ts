import { orAborted } from "./abort.ts";

/**
 * A result that is made once for all requests: by the first one, with its signal. If that request is aborted, another one makes the
 * result again; after a failure, the next request does.
 */
export class SharedAttempt<T> {
  readonly #make: (signal: AbortSignal) => Promise<T>;
  /** Undefined before the first request and after a failure; resolves to undefined if its request was aborted. */
  #attempt: Promise<{ readonly value: T } | undefined> | undefined;

  constructor(make: (signal: AbortSignal) => Promise<T>) {
    this.#make = make;
  }

  /** Returns the result. Rejects with the reason of `make`, or with that of `signal`. */
  async get(signal: AbortSignal): Promise<T> {
    for (;;) {
      this.#attempt ??= this.#make(signal).then(
        (value) => ({ value }),
        (thrown: unknown) => {
          this.#attempt = undefined;
          if (signal.aborted) return undefined;
          throw thrown;
        },
      );
      const made = await orAborted(this.#attempt, signal);
      if (made) return made.value;
    }
  }
}
