import { orAborted } from "../async/abort.ts";
import { SluiceError } from "../base/errors.ts";
import type { SegmentBytes } from "../transfer/segment-source.ts";

/** Makes a segment; the signal fires when no request waits for it any more. */
export type MakeSegment = (signal: AbortSignal) => Promise<SegmentBytes>;

/** Enough for players that follow each other to share segments; small compared to the piece buffers. */
const DEFAULT_LIMIT_BYTES = 24 * 1024 * 1024;
/** One segment may exceed the limit of the cache, so that it is not made twice: 6 s at 80 Mbit/s. */
const LARGEST_BYTES = 64 * 1024 * 1024;

interface Production {
  readonly result: Promise<SegmentBytes>;
  readonly abort: AbortController;
  requesters: number;
}

/**
 * Segments by key. Concurrent requests for a segment share one production, which is aborted only when its last requester has
 * left. Beyond the limit the least recently requested segments are evicted, but never the newest.
 */
export class SegmentCache {
  readonly limitBytes: number;
  #bytes = 0;
  readonly #made = new Map<string, SegmentBytes>();
  readonly #making = new Map<string, Production>();

  constructor(limitBytes = DEFAULT_LIMIT_BYTES) {
    this.limitBytes = limitBytes;
  }

  /** Total size of the cached segments. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Returns the segment if it is cached, and marks it as recently requested. */
  held(key: string): SegmentBytes | undefined {
    const bytes = this.#made.get(key);
    if (bytes) {
      this.#made.delete(key);
      this.#made.set(key, bytes);
    }
    return bytes;
  }

  /** Returns the segment; makes it unless it is cached. Rejects with the reason of `signal` if that fires first. */
  async get(key: string, make: MakeSegment, signal?: AbortSignal): Promise<SegmentBytes> {
    signal?.throwIfAborted();
    const held = this.held(key);
    if (held) return held;
    const production = this.#making.get(key) ?? this.#produce(key, make);
    production.requesters++;
    try {
      return await orAborted(production.result, signal);
    } finally {
      production.requesters--;
      if (production.requesters === 0 && this.#making.get(key) === production) {
        this.#making.delete(key);
        production.abort.abort(new SluiceError("cancelled", "no request waits for this segment any more"));
      }
    }
  }

  /** Discards all cached segments; productions continue for their requesters. */
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
    // Not an unhandled rejection if all requesters have left before it fails.
    result.catch(() => {});
    const production = { result, abort, requesters: 0 };
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
