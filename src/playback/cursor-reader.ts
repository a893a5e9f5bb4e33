import { orAborted } from "../async/abort.ts";
import { after, type UnixSeconds } from "../base/time.ts";
import type { Clock } from "../runtime/contract.ts";
import type { LiveCursor } from "../transfer/segment-source.ts";
import { StreamPace } from "./stream-pace.ts";

/** Whole packets, so that a seek never cuts a packet; about the size of a film's chunk. */
const CHUNK_BYTES = 188 * 697;

/** Dependencies of {@link CursorReader}. */
export interface CursorReaderDependencies {
  readonly clock: Clock;
  readonly cursor: LiveCursor;
  /** Waits until the player waits for data. */
  pulled(): Promise<void>;
  /** Waits for the next bytes of the cursor; fails if no data arrives for too long. */
  wait(next: (signal: AbortSignal) => Promise<Uint8Array | undefined>, signal: AbortSignal): NextBytes;
  /** Called once, when the reader is closed. */
  closed(): void;
}

type NextBytes = Promise<Uint8Array | undefined>;

/**
 * Reads a live stream for one connection, in chunks. It never reads ahead: data that a player does not take stays in the shared
 * window, and is skipped once the window has moved past it.
 */
export class CursorReader {
  /** The packets of the stream; each pull reads one chunk. */
  readonly pieces: ReadableStream<Uint8Array>;
  readonly #dependencies: CursorReaderDependencies;
  readonly #abort = new AbortController();
  #rest: Uint8Array | undefined;
  #pending: NextBytes | undefined;
  readonly #pace = new StreamPace();
  /** Ends a wait for the time at which the next chunk may be sent. */
  #wake: () => void = () => {};
  #isClosed = false;

  constructor(dependencies: CursorReaderDependencies) {
    this.#dependencies = dependencies;
    const pull = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
      await orAborted(this.#dependencies.pulled(), this.#abort.signal);
      const chunk = await this.#next();
      if (this.#isClosed) return;
      if (chunk) return controller.enqueue(chunk);
      this.#close();
      controller.close();
    };
    this.pieces = new ReadableStream({ pull, cancel: () => this.#close() }, { highWaterMark: 0 });
  }

  /** The time of the media that is sent next; undefined before any media has arrived. */
  get position(): UnixSeconds | undefined {
    return this.#dependencies.cursor.position;
  }

  /** Moves to the random access point at or before this time; to the edge if `at` is undefined. */
  seek(at: UnixSeconds | undefined): void {
    this.#rest = undefined;
    this.#pace.reset();
    this.#dependencies.cursor.seek(at);
    this.#wake();
  }

  async #next(): NextBytes {
    while (!this.#rest?.length) {
      const { cursor, wait } = this.#dependencies;
      if (!this.#pending) await this.#untilDue();
      this.#pending ??= wait((signal) => cursor.next(signal), this.#abort.signal);
      const bytes = await this.#pending;
      this.#pending = undefined;
      if (!bytes) return undefined;
      this.#rest = bytes;
    }
    const chunk = this.#rest.subarray(0, CHUNK_BYTES);
    this.#rest = this.#rest.subarray(chunk.length);
    return chunk;
  }

  #close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#dependencies.closed();
    this.#abort.abort();
    this.#wake();
    this.#rest = undefined;
  }

  async #untilDue(): Promise<void> {
    const { clock, cursor } = this.#dependencies;
    while (!this.#isClosed) {
      const waitMs = this.#pace.waitMs(cursor.position, clock.now());
      if (waitMs === 0) return;
      await new Promise<void>((resolve) => {
        const cancel = clock.at(after(clock.now(), waitMs), resolve);
        this.#wake = () => {
          cancel();
          resolve();
        };
      });
    }
  }
}
