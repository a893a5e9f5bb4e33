import { after, type Instant } from "../base/time.ts";
import type { Clock } from "../runtime/contract.ts";
import type { ByteReader, Transfer } from "./contract.ts";
import { bytesSoFar, isAlone, noData, noPeers } from "./patience.ts";
import { readerStream } from "./reader-stream.ts";
import { orAborted } from "./segment-cache.ts";

/** Players that wait for headers give up after about 10 s (CHOICE(held-headers)). */
export const HELD_HEADERS_MS = 8_000;

/** How a stream of raw bytes is guarded. */
export interface GuardOptions {
  readonly clock: Clock;
  readonly transfer: Transfer;
  /** A read that waits so long while no bytes at all come ends with `start_timeout`: the first one, and later ones. */
  readonly startMs: number;
  readonly stallMs: number;
  /** A first read that waits so long without any peer ends with `no_peers`. */
  readonly peersMs: number;
  /** The asker goes away before the first chunk is there. */
  readonly signal?: AbortSignal | undefined;
  /** Called exactly once, however the stream ends. */
  ended(): void;
}

/**
 * The bytes of a reader, pulled as the asker pulls, but never silent for ever. Resolves with the first of them in hand,
 * or after 8 s without (longer while there is no peer at all: that most likely ends as an error, which needs its status);
 * rejects where reading fails or the signal fires before.
 */
export async function guardedStream(
  inner: ByteReader,
  options: GuardOptions,
): Promise<ReadableStream<Uint8Array>> {
  const guarded = new GuardedReader(inner, options);
  const first = new FirstBytes(guarded);
  try {
    const held = heldBack(first.filled, options);
    await (options.signal ? orAborted(held, options.signal) : held);
  } catch (thrown) {
    // The read in progress has no one to go to.
    first.filled.catch(() => {});
    guarded.close(thrown);
    throw thrown;
  }
  return readerStream(first);
}

async function heldBack(filled: Promise<unknown>, { clock, transfer, peersMs }: GuardOptions): Promise<void> {
  const isThere = await orLater(filled, clock, HELD_HEADERS_MS);
  if (!isThere && isAlone(transfer) && peersMs > HELD_HEADERS_MS)
    await orLater(filled, clock, peersMs - HELD_HEADERS_MS);
}

/** What is read before anybody pulls: little, so that many who ask and go cost little. */
const FIRST_BYTES = 16 * 1024;

/** Reads the first bytes at once, and hands them out before all that follows. */
class FirstBytes implements ByteReader {
  readonly #inner: ByteReader;
  readonly #bytes = new Uint8Array(FIRST_BYTES);
  /** Resolves with how many there are. */
  readonly filled: Promise<number>;
  /** How many are left; undefined until they are there, and wanted. */
  #at: number | undefined = 0;

  constructor(inner: ByteReader) {
    this.#inner = inner;
    this.filled = Promise.resolve(inner.read(this.#bytes));
  }

  read(into: Uint8Array): number | Promise<number> {
    if (this.#at === undefined) return this.#inner.read(into);
    return this.filled.then((length) => this.#hand(into, length));
  }

  close(reason?: unknown): void {
    this.#inner.close(reason);
  }

  #hand(into: Uint8Array, length: number): number {
    const part = this.#bytes.subarray(this.#at, Math.min(length, this.#at! + into.length));
    into.set(part);
    this.#at = this.#at! + part.length < length ? this.#at! + part.length : undefined;
    return part.length;
  }
}

/** Resolves when `promise` does or after `ms`; rejects where it rejects before. */
export function orLater(promise: Promise<unknown>, clock: Clock, ms: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const cancel = clock.at(after(clock.now(), ms), () => resolve(false));
    promise.then(() => resolve(true), reject).finally(cancel);
  });
}

/** A reader whose waits are watched by one timer, however many reads pass. */
class GuardedReader implements ByteReader {
  readonly #inner: ByteReader;
  readonly #options: GuardOptions;
  /** Since when, and what ends the wait. */
  #waiting: { readonly since: Instant; readonly fail: (reason: unknown) => void } | undefined;
  #hasBegun = false;
  #cancelTimer: () => void = () => {};
  #hasEnded = false;

  constructor(inner: ByteReader, options: GuardOptions) {
    this.#inner = inner;
    this.#options = options;
    this.#watch();
  }

  read(into: Uint8Array): number | Promise<number> {
    const got = this.#inner.read(into);
    if (typeof got !== "number") return this.#wait(got);
    this.#hasBegun = true;
    if (got === 0) this.#end();
    return got;
  }

  close(reason?: unknown): void {
    this.#end();
    this.#inner.close(reason);
  }

  async #wait(reading: Promise<number>): Promise<number> {
    try {
      const got = await new Promise<number>((resolve, reject) => {
        this.#waiting = { since: this.#options.clock.now(), fail: reject };
        reading.then(resolve, reject);
      });
      this.#hasBegun = true;
      if (got === 0) this.#end();
      return got;
    } catch (thrown) {
      this.close(thrown);
      throw thrown;
    } finally {
      this.#waiting = undefined;
    }
  }

  #watch(afterMs = this.#limitMs()): void {
    const { clock, transfer } = this.#options;
    const bytesBefore = bytesSoFar(transfer);
    this.#cancelTimer = clock.at(after(clock.now(), afterMs), () => {
      const waiting = this.#waiting;
      const limitMs = this.#limitMs();
      const waitedMs = waiting === undefined ? 0 : clock.now() - waiting.since;
      if (bytesSoFar(transfer) > bytesBefore) return this.#watch();
      if (waiting === undefined || waitedMs < limitMs) return this.#watch(limitMs - waitedMs);
      waiting.fail(this.#isLost ? noPeers(limitMs, transfer) : noData(limitMs, transfer));
    });
  }

  /** Whether a first read waits while nobody is there. */
  get #isLost(): boolean {
    return !this.#hasBegun && isAlone(this.#options.transfer);
  }

  #limitMs(): number {
    const { startMs, stallMs, peersMs } = this.#options;
    if (this.#isLost) return peersMs;
    return this.#hasBegun ? stallMs : startMs;
  }

  #end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#cancelTimer();
    this.#options.ended();
  }
}
