import { concatBytes } from "../../base/bytes.ts";
import type { LivePart } from "./live-window-parts.ts";

/** What is known of a segment when it begins. */
export interface KeptSegmentFacts {
  /** Counts all kept segments. */
  readonly serial: number;
  readonly epoch: number;
  /** The number that the source signed. */
  readonly number: number;
  /** When the source received the first byte, in UNIX ms. */
  readonly startMs: number;
  /** It begins at the segment start that the source signed, so all engines have the same bytes. */
  readonly isFromStart: boolean;
}

/** A random access point: a player can start here. */
export interface Cut {
  /** Bytes from the start of the segment. */
  readonly at: number;
  readonly timeMs: number;
}

/** The bytes of a piece, or of its part that belongs to the segment. */
interface Run {
  readonly at: number;
  readonly bytes: Uint8Array;
}

/** Shorter reads are joined with the following runs, for players behind the edge. */
const SMALL_BYTES = 64 * 1024;
/** Limit of cuts per segment. */
const MAX_CUTS = 64;

/** A segment of a live stream: in memory, on disk, or both. It grows until it is closed, and is gone when it has left
 * the window. A reader that still refers to a segment that is gone holds no media. */
export class KeptSegment {
  readonly facts: KeptSegmentFacts;
  /** Size, in memory and on disk. */
  bytes = 0;
  /** When the source received the last byte, in UNIX ms. */
  endMs: number;
  /** Part of this time in which the source sent nothing. */
  silentMs = 0;
  /** Where the HLS segment ends, if bytes after a discontinuity follow. */
  mediaEnd: { readonly at: number; readonly timeMs: number } | undefined;
  /** Decode time of its first access unit, in 90 kHz ticks. */
  decodeTicks: number | undefined;
  /** Playing time; 0 until it is closed. */
  durationMs = 0;
  /** A discontinuity precedes it. */
  isDiscontinuous = false;
  /** Number of discontinuities up to its start, its own included. */
  discontinuity = 0;
  /** It is an HLS segment: not the rest of one, and not one without end. */
  isListed = true;
  isClosed = false;
  /** Bytes of it are missing, after its start or before its end. */
  hasGap = false;
  isGone = false;
  /** The state of its copy on disk. */
  storage: "memory" | "waiting" | "writing" | "saved" = "memory";
  parts: readonly LivePart[] = [];
  /** More parts will follow. */
  isCutting = false;
  #runs: Run[] | undefined = [];
  #cuts: Cut[] = [];

  constructor(facts: KeptSegmentFacts) {
    this.facts = facts;
    this.endMs = facts.startMs;
  }

  /** Bytes held in memory. */
  get memoryBytes(): number {
    return this.#runs ? this.bytes : 0;
  }

  get runCount(): number {
    return this.#runs?.length ?? 0;
  }

  /** Whether a manifest can list it. */
  get isListable(): boolean {
    return this.isListed && this.isClosed && !this.isGone && this.mediaBytes > 0;
  }

  /** Whether it has all bytes that the source signed for it, so that all engines have the same ones. */
  get isWhole(): boolean {
    return this.facts.isFromStart && this.isListable && !this.hasGap;
  }

  /** The size of the HLS segment. */
  get mediaBytes(): number {
    return this.mediaEnd?.at ?? this.bytes;
  }

  /** Random access points, oldest first. A segment that is only on disk keeps only the one at its start. */
  get cuts(): readonly Cut[] {
    return this.#cuts;
  }

  /** Appends `bytes` without copying them. `cut` is a random access point in them. */
  append(bytes: Uint8Array, endMs: number, cut?: Cut): void {
    this.endMs = Math.max(this.endMs, endMs);
    if (bytes.length === 0) return;
    if (cut && this.#cuts.length < MAX_CUTS) this.#cuts.push({ at: this.bytes + cut.at, timeMs: cut.timeMs });
    this.#runs?.push({ at: this.bytes, bytes });
    this.bytes += bytes.length;
  }

  /** Frees the memory. */
  release(): void {
    this.#runs = undefined;
    this.#cuts = this.#cuts.filter(({ at }) => at === 0);
  }

  /** Returns up to `limit` bytes at `at` from memory; undefined if they are not in memory. The result is a view if
   * that is large enough, else what `join` makes of several. */
  peek(
    at: number,
    limit: number,
    join: (views: Uint8Array[]) => Uint8Array = concatBytes,
  ): Uint8Array | undefined {
    if (!this.#runs) return undefined;
    let index = this.#runAt(at);
    const first = this.#runs[index];
    if (!first) return new Uint8Array(0);
    const view = first.bytes.subarray(at - first.at, at - first.at + limit);
    if (view.length >= Math.min(limit, SMALL_BYTES) || index + 1 === this.#runs.length) return view;
    const views = [view];
    let length = view.length;
    while (length < limit && ++index < this.#runs.length) {
      const next = this.#runs[index]!.bytes.subarray(0, limit - length);
      views.push(next);
      length += next.length;
    }
    return join(views);
  }

  /** Estimates when the source received the byte at `at`, in UNIX ms. */
  timeAt(at: number): number {
    const { startMs } = this.facts;
    return this.bytes === 0 ? startMs : startMs + ((this.endMs - startMs) * at) / this.bytes;
  }

  /** Returns the index of the last run that begins at or before `at`. */
  #runAt(at: number): number {
    const runs = this.#runs!;
    let low = 0;
    let high = runs.length;
    while (low + 1 < high) {
      const middle = (low + high) >> 1;
      if (runs[middle]!.at <= at) low = middle;
      else high = middle;
    }
    return at >= this.bytes ? runs.length : low;
  }
}

/** Returns the bytes `[start, end)` of a segment by as many reads of its window as it takes. */
export async function readRange(
  window: { read(segment: KeptSegment, at: number, limit: number): Promise<Uint8Array> },
  segment: KeptSegment,
  start: number,
  end: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const read: Uint8Array[] = [];
  for (let at = start; at < end; at += read.at(-1)!.length)
    read.push(await window.read(segment, at, end - at));
  return concatBytes(read);
}
