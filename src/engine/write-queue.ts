import { after, type Instant } from "../base/time.ts";
import type { Clock } from "../runtime/contract.ts";
import { type CacheLayout, segmentOf } from "./cache-layout.ts";
import type { MemoryPiece } from "./piece-memory.ts";

/**
 * So long the swarm waits for the disk where memory is full. A memory of 24 MB that is written within a second is a disk of 24
 * MB/s: no film comes faster, so that only copies wait for their disk, and players never.
 */
const PATIENCE_MS = 1_000;
/** Neighbouring small pieces are written together, up to so much at once. */
export const BATCH_BYTES = 1024 * 1024;

interface Waiting {
  readonly entry: MemoryPiece;
  readonly since: Instant;
}

/** The pieces of one content that wait to be written, in the order in which they came, and those that are being written. */
export class WriteQueue {
  readonly #layout: CacheLayout;
  readonly #clock: Clock;
  readonly #becameLate: () => void;
  #waiting: Waiting[] = [];
  #writing: Waiting[] = [];
  #isWatching = false;

  /** `becameLate` is called when pieces have waited for so long that the swarm does not wait with them any more. */
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

  /** The next run of neighbouring pieces that still wait, and how many before it were given up meanwhile. */
  next(): { readonly batch: readonly MemoryPiece[]; readonly lost: number } {
    const run: Waiting[] = [];
    let bytes = 0;
    let taken = 0;
    for (const waiting of this.#waiting) {
      const { entry } = waiting;
      if (entry.state === "unsaved") {
        const last = run.at(-1)?.entry;
        if (last && !this.#goesOn(last, entry)) break;
        if (last && bytes + entry.bytes.length > BATCH_BYTES) break;
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

  /** The run that was taken last is written, or could not be. */
  done(): void {
    this.#writing = [];
  }

  /** Empties the queue: these will not be written. */
  clear(): MemoryPiece[] {
    return this.#waiting.splice(0).map(({ entry }) => entry);
  }

  /** Whether `next` lies right behind `last` in the same file. */
  #goesOn(last: MemoryPiece, next: MemoryPiece): boolean {
    return (
      next.piece === last.piece + 1 &&
      // Behind a piece that is shorter than others (the end of a file of version 2) there is a gap.
      last.bytes.length === this.#layout.pieceLength &&
      segmentOf(this.#layout, next.piece) === segmentOf(this.#layout, last.piece)
    );
  }

  /** Looks again when the first piece has had its time. */
  #watch(): void {
    if (this.#isWatching) return;
    const first = this.#writing.find(isInTime) ?? this.#waiting.find(isInTime);
    if (first === undefined) return;
    this.#isWatching = true;
    this.#clock.at(after(first.since, PATIENCE_MS), () => {
      this.#isWatching = false;
      this.#markLate();
      this.#watch();
    });
  }

  #markLate(): void {
    const now = this.#clock.now();
    const late = [...this.#writing, ...this.#waiting].filter(
      (waiting) => isInTime(waiting) && after(waiting.since, PATIENCE_MS) <= now,
    );
    for (const { entry } of late) entry.isLate = true;
    if (late.length > 0) this.#becameLate();
  }
}

function isInTime({ entry }: Waiting): boolean {
  return !entry.isLate;
}
