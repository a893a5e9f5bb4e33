import { concatBytes } from "../../base/bytes.ts";
import type { LivePart } from "./live-window-parts.ts";

/** What is said of a kept segment when it begins. */
export interface KeptSegmentFacts {
  /** Counts all that was kept, one by one. */
  readonly serial: number;
  readonly epoch: number;
  /** As the source signed it. */
  readonly number: number;
  /** When its first byte came to the source, in UNIX ms. */
  readonly startMs: number;
  /** It begins where the source says that the segment begins: all engines have the same bytes. */
  readonly isFromStart: boolean;
}

/** A place where a player can begin. */
export interface Cut {
  /** Bytes from the start of the segment. */
  readonly at: number;
  readonly timeMs: number;
}

/** The bytes of a piece, or of the part of one that belongs to the segment. */
interface Run {
  readonly at: number;
  readonly bytes: Uint8Array;
}

/** Pieces that end below this are joined with the next for a player that is behind. */
const SMALL_BYTES = 64 * 1024;
/** More places to begin than this need not be known within one segment. */
const MAX_CUTS = 64;

/**
 * What is kept of one segment of a live stream: in memory, on disk, or both. It grows at its end until it is closed, and is gone when it
 * has left the window. Who stands in one that is gone holds no media.
 */
export class KeptSegment {
  readonly facts: KeptSegmentFacts;
  /** All bytes, those in memory and those on disk. */
  bytes = 0;
  /** When its last byte came, in UNIX ms. */
  endMs: number;
  /** Of these the source sent nothing. */
  silentMs = 0;
  /** What belongs to the segment of HLS, where something follows that does not: bytes after the clocks have jumped. */
  mediaEnd: { readonly at: number; readonly timeMs: number } | undefined;
  /** The decode time of its first unit, in ticks of 90 kHz. */
  decodeTicks: number | undefined;
  /** How long it plays; 0 until it is closed. */
  durationMs = 0;
  /** The clocks jump before it. */
  isDiscontinuous = false;
  /** How many jumps there were up to its beginning, its own among them. */
  discontinuity = 0;
  /** It is a segment of HLS: not a rest of one, nor one without end. */
  isListed = true;
  isClosed = false;
  isGone = false;
  /** Where it stands on its way to the disk. */
  storage: "memory" | "waiting" | "writing" | "saved" = "memory";
  parts: readonly LivePart[] = [];
  /** More parts will come. */
  isCutting = false;
  #runs: Run[] | undefined = [];
  #cuts: Cut[] = [];

  constructor(facts: KeptSegmentFacts) {
    this.facts = facts;
    this.endMs = facts.startMs;
  }

  /** Bytes in memory. */
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

  /** The bytes of the segment of HLS. */
  get mediaBytes(): number {
    return this.mediaEnd?.at ?? this.bytes;
  }

  /** Places to begin, the oldest first; only the first of what is no longer in memory. */
  get cuts(): readonly Cut[] {
    return this.#cuts;
  }

  /** Puts more at its end; `bytes` are kept as they are. `cut` is where in them a player can begin. */
  append(bytes: Uint8Array, endMs: number, cut?: Cut): void {
    this.endMs = Math.max(this.endMs, endMs);
    if (bytes.length === 0) return;
    if (cut && this.#cuts.length < MAX_CUTS) this.#cuts.push({ at: this.bytes + cut.at, timeMs: cut.timeMs });
    this.#runs?.push({ at: this.bytes, bytes });
    this.bytes += bytes.length;
  }

  /** Lets go of what is in memory. */
  release(): void {
    this.#runs = undefined;
    this.#cuts = this.#cuts.filter(({ at }) => at === 0);
  }

  /** What stands at `at` in memory, at most `limit` bytes; undefined where it is not in memory. A view where that is large enough. */
  peek(at: number, limit: number): Uint8Array | undefined {
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
    return concatBytes(views);
  }

  /** When the byte at `at` came to the source, in UNIX ms, as far as that can be told. */
  timeAt(at: number): number {
    const { startMs } = this.facts;
    return this.bytes === 0 ? startMs : startMs + ((this.endMs - startMs) * at) / this.bytes;
  }

  /** The last run that begins at or before `at`. */
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
