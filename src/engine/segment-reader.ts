import { after } from "../base/time.ts";
import type { Clock } from "../runtime/contract.ts";
import { orLater } from "./guarded-stream.ts";
import type { SegmentBytes } from "./segment-cache.ts";
import { type ChunkReader, KEEP_ALIVE_MS, nullPackets } from "./ts-stream.ts";

/** Large enough that a chunk costs little, small enough that a slow player gets its next one soon. */
const CHUNK_BYTES = 128 * 1024;
/** A player that has not pulled for so long no longer keeps its segment in memory; it is made again if it comes back. */
const KEEP_SEGMENT_MS = 5_000;

/** Where the segments come from. */
export interface SegmentReaderParts {
  readonly clock: Clock;
  /** The index to begin with. */
  first(signal: AbortSignal): Promise<number>;
  /** The index to go on with, waited for; undefined at the end. */
  reach(index: number, signal: AbortSignal): Promise<number | undefined>;
  segment(index: number, signal: AbortSignal): Promise<SegmentBytes>;
}

interface Loaded {
  readonly index: number;
  readonly bytes: SegmentBytes;
}

/** All segments one after another, in chunks. The next segment is made while this one is read, never more. */
export class SegmentReader implements ChunkReader {
  readonly #parts: SegmentReaderParts;
  readonly #abort = new AbortController();
  /** The segment that is read, or comes next; undefined before the first. */
  #index: number | undefined;
  #offset = 0;
  #hasStarted = false;
  #segment: SegmentBytes | undefined;
  #loading: Promise<Loaded | undefined> | undefined;
  #cancelForget: (() => void) | undefined;
  #lastPull = 0;

  constructor(parts: SegmentReaderParts) {
    this.#parts = parts;
  }

  async next(): Promise<Uint8Array | undefined> {
    this.#lastPull = this.#parts.clock.now();
    for (;;) {
      if (!this.#segment) {
        this.#loading ??= this.#load(this.#index);
        if (!this.#hasStarted && !(await orLater(this.#loading, this.#parts.clock, KEEP_ALIVE_MS)))
          return nullPackets();
        const loaded = await this.#loading;
        this.#loading = undefined;
        if (!loaded) return undefined;
        // What has gone by meanwhile is not there to be read again from its middle.
        if (this.#index !== undefined && loaded.index !== this.#index) this.#offset = 0;
        this.#index = loaded.index;
        this.#segment = loaded.bytes;
        this.#hasStarted = true;
        this.#prepare(this.#index + 1);
      }
      if (this.#offset < this.#segment.length) break;
      this.#index = this.#index! + 1;
      this.#offset = 0;
      this.#segment = undefined;
    }
    const chunk = this.#segment.subarray(this.#offset, this.#offset + CHUNK_BYTES);
    this.#offset += chunk.length;
    this.#cancelForget ??= this.#forgetLater(KEEP_SEGMENT_MS);
    return chunk;
  }

  close(): void {
    this.#abort.abort();
    this.#cancelForget?.();
    this.#segment = undefined;
  }

  async #load(index: number | undefined): Promise<Loaded | undefined> {
    const { signal } = this.#abort;
    const reached = await this.#parts.reach(index ?? (await this.#parts.first(signal)), signal);
    if (reached === undefined) return undefined;
    return { index: reached, bytes: await this.#parts.segment(reached, signal) };
  }

  /** Asks for the next segment, so that it is made by the time it is read. */
  #prepare(index: number): void {
    // A failure is heard when the segment is asked for again, to be read.
    this.#load(index).catch(() => {});
  }

  #forgetLater(afterMs: number): () => void {
    const { clock } = this.#parts;
    return clock.at(after(clock.now(), afterMs), () => {
      const quietMs = clock.now() - this.#lastPull;
      if (quietMs >= KEEP_SEGMENT_MS) {
        this.#segment = undefined;
        this.#cancelForget = undefined;
      } else {
        this.#cancelForget = this.#forgetLater(KEEP_SEGMENT_MS - quietMs);
      }
    });
  }
}
