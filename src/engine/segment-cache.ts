import { SluiceError } from "../base/errors.ts";

/** A made segment. Shared by all who asked for it: nobody may write to it. */
export type SegmentBytes = Uint8Array<ArrayBuffer>;

/** Makes a segment; the signal fires when nobody wants it any more. */
export type MakeSegment = (signal: AbortSignal) => Promise<SegmentBytes>;

/** Enough that players who follow each other share what was made, and small beside the piece buffers. */
const DEFAULT_LIMIT_BYTES = 24 * 1024 * 1024;
/** One segment may be larger than the whole budget, so that what was prepared is not made twice: 6 s at 80 Mbit/s. */
const LARGEST_BYTES = 64 * 1024 * 1024;

interface Production {
  readonly result: Promise<SegmentBytes>;
  readonly abort: AbortController;
  askers: number;
}

/**
 * Segments by key: each is made once for all who ask at the same time, and kept while the budget lasts, the least
 * recently asked going first, the newest never. A production ends early only when the last of its askers has gone.
 */
export class SegmentCache {
  readonly limitBytes: number;
  #bytes = 0;
  readonly #made = new Map<string, SegmentBytes>();
  readonly #making = new Map<string, Production>();

  constructor(limitBytes = DEFAULT_LIMIT_BYTES) {
    this.limitBytes = limitBytes;
  }

  /** Bytes of segments held now. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The segment where it is held already. */
  held(key: string): SegmentBytes | undefined {
    const bytes = this.#made.get(key);
    if (bytes) {
      this.#made.delete(key);
      this.#made.set(key, bytes);
    }
    return bytes;
  }

  /** The segment, made where it is not held; rejects with the signal's reason where the asker goes first. */
  async get(key: string, make: MakeSegment, signal?: AbortSignal): Promise<SegmentBytes> {
    signal?.throwIfAborted();
    const held = this.held(key);
    if (held) return held;
    const production = this.#making.get(key) ?? this.#produce(key, make);
    production.askers++;
    try {
      return await (signal ? orAborted(production.result, signal) : production.result);
    } finally {
      production.askers--;
      if (production.askers === 0 && this.#making.get(key) === production) {
        this.#making.delete(key);
        production.abort.abort(new SluiceError("cancelled", "nobody waits for this segment any more"));
      }
    }
  }

  /** Forgets what is held; productions go on for those who wait. */
  clear(): void {
    this.#made.clear();
    this.#bytes = 0;
  }

  #produce(key: string, make: MakeSegment): Production {
    const abort = new AbortController();
    const result = make(abort.signal).then(
      (bytes) => {
        if (this.#making.get(key)?.abort === abort) this.#making.delete(key);
        this.#keep(key, bytes);
        return bytes;
      },
      (thrown) => {
        if (this.#making.get(key)?.abort === abort) this.#making.delete(key);
        throw thrown;
      },
    );
    // Its askers may all have left before it fails: then its failure is nobody's.
    result.catch(() => {});
    const production = { result, abort, askers: 0 };
    this.#making.set(key, production);
    return production;
  }

  #keep(key: string, bytes: SegmentBytes): void {
    if (bytes.length > LARGEST_BYTES || this.#made.has(key)) return;
    this.#made.set(key, bytes);
    this.#bytes += bytes.length;
    for (const [oldest, old] of this.#made) {
      if (this.#bytes <= this.limitBytes || oldest === key) break;
      this.#made.delete(oldest);
      this.#bytes -= old.length;
    }
  }
}

/** `promise`, or the signal's reason where that comes first. */
export function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) {
    // Nobody is left to hear how it went.
    promise.catch(() => {});
    return Promise.reject(signal.reason);
  }
  return new Promise<T>((resolve, reject) => {
    const aborted = () => reject(signal.reason);
    signal.addEventListener("abort", aborted, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", aborted));
  });
}
