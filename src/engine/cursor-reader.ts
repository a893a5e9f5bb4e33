import { after, type UnixSeconds } from "../base/time.ts";
import type { Clock } from "../runtime/contract.ts";
import { orLater } from "./guarded-stream.ts";
import type { LiveCursor } from "./segment-source.ts";
import { StreamPace } from "./stream-pace.ts";
import { type ChunkReader, KEEP_ALIVE_MS, nullPackets } from "./ts-stream.ts";

/** Whole packets, so that a player that is sent elsewhere is never left within one; as much as a film's chunk. */
const CHUNK_BYTES = 188 * 697;

/** Where the media comes from. */
export interface CursorReaderParts {
  readonly clock: Clock;
  readonly cursor: LiveCursor;
  /** Waits for what the cursor gives, for as long as that makes sense. */
  wait(next: (signal: AbortSignal) => Promise<Uint8Array | undefined>, signal: AbortSignal): NextBytes;
  /** Called once, when nobody will read any more. */
  closed(): void;
}

type NextBytes = Promise<Uint8Array | undefined>;

/** One connection's way through a live stream, in chunks. It reads nothing ahead: what a player does not take stays with
 * all others' in the window, and is skipped where it has left it. */
export class CursorReader implements ChunkReader {
  readonly #parts: CursorReaderParts;
  readonly #abort = new AbortController();
  #rest: Uint8Array | undefined;
  #coming: NextBytes | undefined;
  readonly #pace = new StreamPace();
  /** Ends a wait for the time at which more is due. */
  #wake: () => void = () => {};
  #hasStarted = false;
  #isClosed = false;

  constructor(parts: CursorReaderParts) {
    this.#parts = parts;
  }

  /** The time of what goes out next; undefined before anything is there. */
  get position(): UnixSeconds | undefined {
    return this.#parts.cursor.position;
  }

  /** Goes to the cut at or before this time, to the edge where it is undefined. */
  seek(at: UnixSeconds | undefined): void {
    this.#rest = undefined;
    this.#pace.reset();
    this.#parts.cursor.seek(at);
    this.#wake();
  }

  async next(): NextBytes {
    while (!this.#rest?.length) {
      const { clock, cursor, wait } = this.#parts;
      if (!this.#coming) await this.#untilDue();
      this.#coming ??= wait((signal) => cursor.next(signal), this.#abort.signal);
      if (!this.#hasStarted && !(await orLater(this.#coming, clock, KEEP_ALIVE_MS))) return nullPackets();
      const came = await this.#coming;
      this.#coming = undefined;
      if (!came) return undefined;
      this.#hasStarted = true;
      this.#rest = came;
    }
    const chunk = this.#rest.subarray(0, CHUNK_BYTES);
    this.#rest = this.#rest.subarray(chunk.length);
    return chunk;
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#parts.closed();
    this.#abort.abort();
    this.#wake();
    this.#rest = undefined;
  }

  async #untilDue(): Promise<void> {
    const { clock, cursor } = this.#parts;
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
