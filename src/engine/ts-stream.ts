import { after } from "../base/time.ts";
import type { Clock } from "../runtime/contract.ts";
import { orLater } from "./guarded-stream.ts";
import type { SegmentBytes } from "./segment-cache.ts";

/** Large enough that a chunk costs little, small enough that a slow player gets its next one soon. */
const CHUNK_BYTES = 128 * 1024;
/** A player that has not pulled for so long no longer keeps its segment in memory; it is made again if it comes back. */
const KEEP_SEGMENT_MS = 5_000;
/** How often a player that waits for its first data hears that we are still here. */
const KEEP_ALIVE_MS = 500;

/** Where the stream takes its bytes from. */
export interface TransportStreamParts {
  readonly clock: Clock;
  /** The index to begin with. */
  first(signal: AbortSignal): Promise<number>;
  /** The index to go on with, waited for; undefined at the end. */
  reach(index: number, signal: AbortSignal): Promise<number | undefined>;
  segment(index: number, signal: AbortSignal): Promise<SegmentBytes>;
  /** Called at each pull. */
  touched(): void;
  /** Called once, when nobody will pull any more. */
  closed(): void;
  /** The session is over: the stream ends. */
  readonly ended: AbortSignal;
}

/**
 * All segments one after another as one transport stream, driven by the reader's pull. The next segment is made while
 * this one is read, never more. CHOICE(null-packets): null packets go out only while the very first data is not there,
 * which is 8 s after the request at the earliest, so that no player mistakes them for the content.
 */
export function transportStream(parts: TransportStreamParts): ReadableStream<Uint8Array> {
  const reader = new SegmentReader(parts);
  let isOver = false;
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        parts.ended.addEventListener("abort", () => {
          if (isOver) return;
          isOver = true;
          reader.close();
          controller.close();
        });
      },
      async pull(controller) {
        parts.touched();
        try {
          const chunk = await reader.next();
          if (isOver) return;
          if (chunk) return controller.enqueue(chunk);
          isOver = true;
          reader.close();
          controller.close();
        } catch (thrown) {
          if (isOver) return;
          isOver = true;
          reader.close();
          controller.error(thrown);
        }
      },
      cancel() {
        isOver = true;
        reader.close();
      },
    },
    { highWaterMark: 0 },
  );
}

interface Loaded {
  readonly index: number;
  readonly bytes: SegmentBytes;
}

/** Reads the segments in order, in chunks. */
class SegmentReader {
  readonly #parts: TransportStreamParts;
  readonly #abort = new AbortController();
  /** The segment that is read, or comes next; undefined before the first. */
  #index: number | undefined;
  #offset = 0;
  #hasStarted = false;
  #isClosed = false;
  #segment: SegmentBytes | undefined;
  #loading: Promise<Loaded | undefined> | undefined;
  #cancelForget: (() => void) | undefined;
  #lastPull = 0;

  constructor(parts: TransportStreamParts) {
    this.#parts = parts;
  }

  /** The next chunk, or undefined at the end. */
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
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#parts.closed();
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

/** Seven null packets (ISO 13818-1 2.4.3.2, PID 0x1FFF): one usual network packet of a transport stream. */
function nullPackets(): Uint8Array {
  const packets = new Uint8Array(7 * 188).fill(0xff);
  for (let at = 0; at < packets.length; at += 188) packets.set([0x47, 0x1f, 0xff, 0x10], at);
  return packets;
}
