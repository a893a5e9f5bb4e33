import {
  CustomSource,
  EncodedPacketSink,
  Input,
  type InputAudioTrack,
  type InputFormat,
  type InputTrack,
  type InputVideoTrack,
} from "mediabunny";
import type { AbortSignalLike } from "../base/byte-source.ts";
import { SluiceError } from "../base/errors.ts";
import type { BlockCache } from "./block-cache.ts";
import { Gate } from "./gate.ts";

/** One read may ask for so much: the largest cluster or index we believe. */
const READ_LIMIT_BYTES = 128 * 1024 * 1024;
/** What one demultiplexer may keep of its own; the shared blocks stand behind it. */
const INPUT_CACHE_BYTES = 512 * 1024;
/** Each job waits for bytes of its own place in the file; more at once would only thin out the swarm's attention. */
const JOBS_LIMIT = 4;
/** Parsed indexes kept for the next job. */
const IDLE_LIMIT = 2;

/** One opened demultiplexer, used by one job at a time. */
export interface Demuxer {
  readonly input: Input;
  readonly tracks: readonly InputTrack[];
  /** Packets of `tracks[index]`. */
  sink(index: number): EncodedPacketSink;
}

/** A piece of work on a demultiplexer. */
export type DemuxJob<T> = (demuxer: Demuxer) => Promise<T>;

interface Entry extends Demuxer {
  /** Ends the reads of the present job. */
  stop: AbortController;
}

/**
 * Demultiplexers over one file. Each job gets one of its own: two reads can be in flight in each, a read that hangs
 * would hold up every other user, and a failed read while opening spoils it for good.
 */
export class DemuxPool {
  readonly #cache: BlockCache;
  readonly #formats: InputFormat[];
  readonly #idle: Entry[] = [];
  readonly #busy = new Set<Entry>();
  readonly #closing = new AbortController();
  readonly #gate = new Gate(JOBS_LIMIT);

  /** Bytes that demultiplexers shall see instead of the file's own, by where they lie. */
  readonly patches = new Map<number, Uint8Array>();

  constructor(cache: BlockCache, formats: InputFormat[]) {
    this.#cache = cache;
    this.#formats = formats;
  }

  /** Does `job` on a demultiplexer. Rejects with `SluiceError("cancelled")` when `signal` fires or the pool is closed. */
  run<T>(job: DemuxJob<T>, signal?: AbortSignalLike): Promise<T> {
    return this.#gate.run(() => this.#work(job, signal), signal ?? this.#closing.signal);
  }

  /** Ends all jobs and frees everything. */
  close(): void {
    this.#closing.abort();
    for (const entry of this.#busy) entry.stop.abort();
    for (const entry of this.#idle.splice(0)) entry.input.dispose();
  }

  async #work<T>(job: DemuxJob<T>, signal?: AbortSignalLike): Promise<T> {
    if (this.#closing.signal.aborted) throw cancelled();
    const entry = this.#idle.pop() ?? this.#create();
    const abort = () => entry.stop.abort();
    signal?.addEventListener("abort", abort, { once: true });
    this.#busy.add(entry);
    let stopped: () => void = () => {};
    const ended = new Promise<never>((_, reject) => {
      stopped = () => reject(cancelled());
      entry.stop.signal.addEventListener("abort", stopped, { once: true });
    });
    let good = false;
    try {
      const working = this.#open(entry).then(() => job(entry));
      const result = await Promise.race([working, ended]);
      good = true;
      return result;
    } catch (error) {
      throw entry.stop.signal.aborted ? cancelled() : error;
    } finally {
      signal?.removeEventListener("abort", abort);
      entry.stop.signal.removeEventListener("abort", stopped);
      this.#busy.delete(entry);
      if (good && !this.#closing.signal.aborted && this.#idle.length < IDLE_LIMIT) this.#idle.push(entry);
      else entry.input.dispose();
    }
  }

  async #open(entry: Entry): Promise<void> {
    if (entry.tracks.length === 0)
      (entry as { tracks: readonly InputTrack[] }).tracks = await entry.input.getTracks();
  }

  #read(start: number, end: number, signal: AbortSignalLike): Uint8Array | Promise<Uint8Array> {
    const bytes = this.#cache.read(start, end, signal);
    for (const [at, patch] of this.patches) {
      if (at >= end || at + patch.length <= start) continue;
      return Promise.resolve(bytes).then((own) => patched(own, start, this.patches));
    }
    return bytes;
  }

  #create(): Entry {
    const stop = new AbortController();
    const input = new Input({
      formats: this.#formats,
      source: new CustomSource({
        getSize: () => this.#cache.size,
        read: (start, end) => {
          if (end - start > READ_LIMIT_BYTES) {
            throw new SluiceError("broken_media", `the file asks for ${end - start} bytes at once`);
          }
          return this.#read(start, end, stop.signal);
        },
        maxCacheSize: INPUT_CACHE_BYTES,
        prefetchProfile: "none",
        // Reads that nobody waits for any more: their job has been told already.
        handleUnhandledError: () => {},
      }),
    });
    const sinks = new Map<number, EncodedPacketSink>();
    const entry: Entry = {
      input,
      tracks: [],
      stop,
      sink(index) {
        let sink = sinks.get(index);
        if (!sink) {
          sink = new EncodedPacketSink(entry.tracks[index] as InputVideoTrack | InputAudioTrack);
          sinks.set(index, sink);
        }
        return sink;
      },
    };
    return entry;
  }
}

function patched(bytes: Uint8Array, start: number, patches: ReadonlyMap<number, Uint8Array>): Uint8Array {
  const copy = bytes.slice();
  for (const [at, patch] of patches) {
    for (const [i, byte] of patch.entries()) {
      const place = at + i - start;
      if (place >= 0 && place < copy.length) copy[place] = byte;
    }
  }
  return copy;
}

function cancelled(): SluiceError {
  return new SluiceError("cancelled", "the request was cancelled");
}
