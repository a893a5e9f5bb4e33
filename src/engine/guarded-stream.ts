import { after, type Instant } from "../base/time.ts";
import type { Clock } from "../runtime/contract.ts";
import type { Transfer } from "./contract.ts";
import { bytesSoFar, noData } from "./patience.ts";
import { orAborted } from "./segment-cache.ts";

/** Players that wait for headers give up after about 10 s (CHOICE(held-headers)). */
export const HELD_HEADERS_MS = 8_000;

/** How a stream of raw bytes is guarded. */
export interface GuardOptions {
  readonly clock: Clock;
  readonly transfer: Transfer;
  /** A read that waits so long while no bytes at all come ends with `start_timeout`. */
  readonly stallMs: number;
  /** The asker goes away before the first chunk is there. */
  readonly signal?: AbortSignal | undefined;
  /** Called exactly once, however the stream ends. */
  ended(): void;
}

/**
 * The same bytes, pulled as the reader pulls, but never silent for ever. Resolves with the first chunk in hand, or
 * after 8 s without it; rejects where reading fails or the signal fires before.
 */
export async function guardedStream(
  inner: ReadableStream<Uint8Array>,
  options: GuardOptions,
): Promise<ReadableStream<Uint8Array>> {
  const guarded = new GuardedReader(inner.getReader(), options);
  const first = guarded.read();
  try {
    const held = orLater(first, options.clock, HELD_HEADERS_MS);
    await (options.signal ? orAborted(held, options.signal) : held);
  } catch (thrown) {
    // The read in progress has no one to go to.
    first.catch(() => {});
    await guarded.cancel(thrown);
    throw thrown;
  }
  let next: Promise<Uint8Array | undefined> | undefined = first;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const reading = next ?? guarded.read();
        next = undefined;
        const chunk = await reading;
        if (chunk) controller.enqueue(chunk);
        else controller.close();
      },
      cancel: (reason) => guarded.cancel(reason),
    },
    { highWaterMark: 0 },
  );
}

/** Resolves when `promise` does or after `ms`; rejects where it rejects before. */
export function orLater(promise: Promise<unknown>, clock: Clock, ms: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const cancel = clock.at(after(clock.now(), ms), () => resolve(false));
    promise.then(() => resolve(true), reject).finally(cancel);
  });
}

/** A reader whose waits are watched by one timer, however many chunks pass. */
class GuardedReader {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #options: GuardOptions;
  #waitingSince: Instant | undefined;
  #bytesBefore = 0;
  #cancelTimer: () => void = () => {};
  #failure: unknown;
  #hasEnded = false;

  constructor(reader: ReadableStreamDefaultReader<Uint8Array>, options: GuardOptions) {
    this.#reader = reader;
    this.#options = options;
    this.#watch();
  }

  /** The next chunk, or undefined at the end. */
  async read(): Promise<Uint8Array | undefined> {
    this.#waitingSince = this.#options.clock.now();
    try {
      const result = await this.#reader.read();
      if (this.#failure !== undefined) throw this.#failure;
      if (result.done) this.#end();
      return result.value;
    } catch (thrown) {
      this.#end();
      throw thrown;
    } finally {
      this.#waitingSince = undefined;
    }
  }

  async cancel(reason: unknown): Promise<void> {
    this.#end();
    await this.#reader.cancel(reason);
  }

  #watch(): void {
    const { clock, stallMs, transfer } = this.#options;
    this.#bytesBefore = bytesSoFar(transfer);
    this.#cancelTimer = clock.at(after(clock.now(), stallMs), () => {
      const waits = this.#waitingSince !== undefined && clock.now() - this.#waitingSince >= stallMs;
      if (!waits || bytesSoFar(transfer) > this.#bytesBefore) return this.#watch();
      this.#failure = noData(stallMs);
      // Ends the read that waits. What the source says to that has no one to go to.
      this.#reader.cancel(this.#failure).catch(() => {});
    });
  }

  #end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#cancelTimer();
    this.#options.ended();
  }
}
