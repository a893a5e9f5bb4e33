import { after, type Instant } from "../base/time.ts";
import type { Clock } from "../runtime/contract.ts";
import { type CacheLayout, segmentOf } from "./cache-layout.ts";
import type { MemoryPiece } from "./piece-memory.ts";

/**
 * How long the swarm waits for the disk if memory is full. A 24 MB memory written within this time is a disk of 24 MB/s, more than
 * any film needs: only full-speed copies wait for the disk, players never do.
 */
const DISK_WAIT_MS = 1_000;
/** Limit of one write: adjacent pieces that arrive during a write are written together by the next one. */
const BATCH_BYTES = 4 * 1024 * 1024;
/** Limit of pieces in one write; systems allow 1,024 parts. */
const BATCH_PIECES = 256;

interface Waiting {
  readonly entry: MemoryPiece;
  readonly since: Instant;
}

/** The pieces of one content that are queued for the disk, in order of arrival, and those being written. */
export class WriteQueue {
  readonly #layout: CacheLayout;
  readonly #clock: Clock;
  readonly #becameLate: () => void;
  #waiting: Waiting[] = [];
  #writing: Waiting[] = [];
  #isWatching = false;

  /** `becameLate` is called when pieces have waited longer than `DISK_WAIT_MS`. */
  constructor(layout: CacheLayout, clock: Clock, becameLate: () => void) {
    this.#layout = layout;
    this.#clock = clock;
    this.#becameLate = becameLate;
  }

  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  push(entry: MemoryPiece): void {
    this.#waiting.push({ entry, since: this.#clock.now() });
    this.#watch();
  }

  /** The next run of adjacent queued pieces, and the number of pieces before it that were dropped in the meantime. */
  next(): { readonly batch: readonly MemoryPiece[]; readonly lost: number } {
    const run: Waiting[] = [];
    let bytes = 0;
    let taken = 0;
    for (const waiting of this.#waiting) {
      const { entry } = waiting;
      if (entry.state === "unsaved") {
        const last = run.at(-1)?.entry;
        if (last && !this.#isAdjacent(last, entry)) break;
        if (last && (bytes + entry.bytes.length > BATCH_BYTES || run.length === BATCH_PIECES)) break;
        run.push(waiting);
        bytes += entry.bytes.length;
      }
      taken++;
    }
    this.#waiting.splice(0, taken);
    this.#writing = run;
    for (const { entry } of run) entry.state = "writing";
    return { batch: run.map(({ entry }) => entry), lost: taken - run.length };
  }

  /** The last run was written, or failed. */
  done(): void {
    this.#writing = [];
  }

  /** Empties the queue and returns the pieces, which will not be written. */
  clear(): MemoryPiece[] {
    return this.#waiting.splice(0).map(({ entry }) => entry);
  }

  /** Returns true if `next` directly follows `last` in the same file. */
  #isAdjacent(last: MemoryPiece, next: MemoryPiece): boolean {
    return (
      next.piece === last.piece + 1 &&
      // A short piece (the end of a file in a v2 torrent) is followed by a gap.
      last.bytes.length === this.#layout.pieceLength &&
      segmentOf(this.#layout, next.piece) === segmentOf(this.#layout, last.piece)
    );
  }

  /** Schedules a check for when the first piece becomes late. */
  #watch(): void {
    if (this.#isWatching) return;
    const first = this.#writing.find(isInTime) ?? this.#waiting.find(isInTime);
    if (first === undefined) return;
    this.#isWatching = true;
    this.#clock.at(after(first.since, DISK_WAIT_MS), () => {
      this.#isWatching = false;
      this.#markLate();
      this.#watch();
    });
  }

  #markLate(): void {
    const now = this.#clock.now();
    const late = [...this.#writing, ...this.#waiting].filter(
      (waiting) => isInTime(waiting) && after(waiting.since, DISK_WAIT_MS) <= now,
    );
    for (const { entry } of late) entry.isLate = true;
    if (late.length > 0) this.#becameLate();
  }
}

function isInTime({ entry }: Waiting): boolean {
  return !entry.isLate;
}
