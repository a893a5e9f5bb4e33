import { orAborted } from "../async/abort.ts";
import { resolvesWithin } from "../async/sleep.ts";
import type { ByteReader } from "../base/byte-source.ts";
import { after, type Instant } from "../base/time.ts";
import type { Clock } from "../runtime/contract.ts";
import type { Transfer } from "../transfer/contract.ts";
import { readerStream } from "../transfer/reader-stream.ts";
import { hasNoPeers, noDataError, noPeersError, receivedBytes } from "./timeouts.ts";

/** Players that wait for headers give up after about 10 s (CHOICE(held-headers)). */
export const HELD_HEADERS_MS = 8_000;

/** Options of {@link guardedStream}. */
export interface GuardOptions {
  readonly clock: Clock;
  readonly transfer: Transfer;
  /** The first read fails with `start_timeout` if no bytes arrive for this time. */
  readonly startMs: number;
  /** The same for later reads. */
  readonly stallMs: number;
  /** The first read fails with `no_peers` after this time without any peer. */
  readonly peersMs: number;
  /** Cancels the wait for the first bytes. */
  readonly signal?: AbortSignal | undefined;
  /** Called exactly once, however the stream ends. */
  ended(): void;
}

/**
 * Returns the bytes of a reader as a stream whose reads time out. Resolves when the first bytes have arrived, or after 8 s;
 * later while there is no peer at all, because that most likely ends with an error that needs its own HTTP status. Rejects if
 * reading fails or the signal fires before.
 */
export async function guardedStream(
  inner: ByteReader,
  options: GuardOptions,
): Promise<ReadableStream<Uint8Array>> {
  const guarded = new GuardedReader(inner, options);
  const first = new FirstBytes(guarded);
  try {
    await orAborted(untilHeadersAreDue(first.filled, options), options.signal);
  } catch (thrown) {
    // The read in progress is abandoned; its failure must not become an unhandled rejection.
    first.filled.catch(() => {});
    guarded.close(thrown);
    throw thrown;
  }
  return readerStream(first);
}

async function untilHeadersAreDue(
  filled: Promise<unknown>,
  { clock, transfer, peersMs }: GuardOptions,
): Promise<void> {
  const hasBytes = await resolvesWithin(filled, clock, HELD_HEADERS_MS);
  if (!hasBytes && hasNoPeers(transfer) && peersMs > HELD_HEADERS_MS)
    await resolvesWithin(filled, clock, peersMs - HELD_HEADERS_MS);
}

/** Read before the first pull: little, so that many requests that are abandoned cost little. */
const FIRST_BYTES = 16 * 1024;

/** Reads the first bytes at once, and returns them before all later ones. */
class FirstBytes implements ByteReader {
  readonly #inner: ByteReader;
  readonly #bytes = new Uint8Array(FIRST_BYTES);
  /** Resolves with the number of first bytes. */
  readonly filled: Promise<number>;
  /** Position of the next byte to return; undefined once all first bytes have been returned. */
  #at: number | undefined = 0;

  constructor(inner: ByteReader) {
    this.#inner = inner;
    this.filled = Promise.resolve(inner.read(this.#bytes));
  }

  read(into: Uint8Array): number | Promise<number> {
    if (this.#at === undefined) return this.#inner.read(into);
    return this.filled.then((length) => this.#copy(into, length));
  }

  close(reason?: unknown): void {
    this.#inner.close(reason);
  }

  #copy(into: Uint8Array, length: number): number {
    const part = this.#bytes.subarray(this.#at, Math.min(length, this.#at! + into.length));
    into.set(part);
    this.#at = this.#at! + part.length < length ? this.#at! + part.length : undefined;
    return part.length;
  }
}

/** A reader whose reads time out. One timer serves all of them. */
class GuardedReader implements ByteReader {
  readonly #inner: ByteReader;
  readonly #options: GuardOptions;
  /** The read in progress: since when it waits, and a function that makes it fail. */
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
    const bytesBefore = receivedBytes(transfer);
    this.#cancelTimer = clock.at(after(clock.now(), afterMs), () => {
      const waiting = this.#waiting;
      const limitMs = this.#limitMs();
      const waitedMs = waiting === undefined ? 0 : clock.now() - waiting.since;
      if (receivedBytes(transfer) > bytesBefore) return this.#watch();
      if (waiting === undefined || waitedMs < limitMs) return this.#watch(limitMs - waitedMs);
      waiting.fail((this.#lacksPeers ? noPeersError : noDataError)(limitMs, transfer));
    });
  }

  /** True while the first read waits and no peer is connected. */
  get #lacksPeers(): boolean {
    return !this.#hasBegun && hasNoPeers(this.#options.transfer);
  }

  #limitMs(): number {
    const { startMs, stallMs, peersMs } = this.#options;
    if (this.#lacksPeers) return peersMs;
    return this.#hasBegun ? stallMs : startMs;
  }

  #end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#cancelTimer();
    this.#options.ended();
  }
}
