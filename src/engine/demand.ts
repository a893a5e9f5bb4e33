import type { ByteRange } from "../base/range.ts";
import type { ReaderId } from "../swarm/contract.ts";
import type { PieceStore } from "./piece-store.ts";

/** Before any rate is known a reader looks this far ahead: half a second at 128 Mbit/s. */
export const FIRST_READ_AHEAD_BYTES = 8 * 1024 * 1024;
/** One reader never looks further than this: beyond it nothing gets faster, only memory larger. */
const MAX_READ_AHEAD_BYTES = 32 * 1024 * 1024;
/** The window moves in steps of this share of itself, so that not every chunk costs a message to the swarm. */
const STEPS_PER_WINDOW = 8;
/** This much is needed at once, however slow the reader: one request to each of many peers. */
const MIN_URGENT_BYTES = 1024 * 1024;

/** Where windows of readers go: to the swarm, and to the store that keeps what is wanted. */
export interface WantSink {
  want(reader: ReaderId, range: ByteRange, urgentBytes: number): void;
  unwant(reader: ReaderId): void;
}

/** With a cache on disk, what is ahead need not stay in memory: half a minute of an 8 Mbit/s film, for all readers. */
const DISK_READ_AHEAD_BYTES = 32 * 1024 * 1024;

/** All readers of one transfer: numbers them and shares the room for read-ahead among them. */
export class Demand {
  readonly store: PieceStore;
  readonly #sink: WantSink;
  readonly #budgetBytes: number;
  readonly #positions = new Map<number, number>();
  #nextId: ReaderId = 1;

  constructor(store: PieceStore, sink: WantSink, memoryLimitBytes: number) {
    this.store = store;
    this.#sink = sink;
    // The other half holds what was read lately and what is being filled.
    this.#budgetBytes = Math.max(memoryLimitBytes / 2, store.isOnDisk ? DISK_READ_AHEAD_BYTES : 0);
  }

  /** A new reader of the bytes up to `end` (of the whole content). It wants nothing before its first `moveTo`. */
  reader(end: number): Reader {
    return new Reader(this, this.#sink, this.#nextId++, end);
  }

  /** How far ahead one reader may look now: readers near each other share one window, others share the room. */
  get readAheadLimitBytes(): number {
    const places = Math.max(1, this.#positions.size);
    return Math.max(
      Math.min(MAX_READ_AHEAD_BYTES, this.#budgetBytes / places),
      // One piece to read, one to fill meanwhile.
      2 * this.store.layout.pieceLength,
    );
  }

  /** Counts readers by the stretch of content they stand in. */
  moved(from: number | undefined, to: number | undefined): void {
    if (from === to) return;
    if (to !== undefined) this.#positions.set(to, (this.#positions.get(to) ?? 0) + 1);
    if (from === undefined) return;
    const left = this.#positions.get(from)! - 1;
    if (left > 0) this.#positions.set(from, left);
    else this.#positions.delete(from);
  }
}

/** One position in the content with the window it wants before it. */
export class Reader {
  readonly #demand: Demand;
  readonly #sink: WantSink;
  readonly #id: ReaderId;
  readonly #end: number;
  #window: ByteRange | undefined;
  #stretch: number | undefined;

  constructor(demand: Demand, sink: WantSink, id: ReaderId, end: number) {
    this.#demand = demand;
    this.#sink = sink;
    this.#id = id;
    this.#end = end;
  }

  /** The end of the window, or 0 where there is none yet. */
  get windowEnd(): number {
    return this.#window?.end ?? 0;
  }

  /**
   * The reader stands at `position` and wants the `aheadBytes` after it. At least `needBytes` of them are wanted
   * whatever the limits say, and those are urgent.
   */
  moveTo(position: number, aheadBytes: number, needBytes: number): void {
    const { store } = this.#demand;
    const limit = Math.max(needBytes, Math.min(aheadBytes, this.#demand.readAheadLimitBytes));
    const end = Math.min(this.#end, position + limit);
    const window = this.#window;
    if (window && this.#isStillRight(window, position, end, Math.min(end, position + needBytes))) return;
    if (position >= end) {
      this.close();
      return;
    }
    this.#stand(Math.floor(position / Math.max(FIRST_READ_AHEAD_BYTES, store.layout.pieceLength)));
    this.#window = { start: position, end };
    store.moveWindow(window, this.#window);
    this.#sink.want(this.#id, this.#window, this.#urgentBytes(position, end, needBytes));
  }

  /** Wants nothing any more. */
  close(): void {
    if (this.#window === undefined) return;
    const window = this.#window;
    this.#window = undefined;
    this.#stand(undefined);
    this.#sink.unwant(this.#id);
    this.#demand.store.moveWindow(window, undefined);
  }

  /** Whether the window at hand serves as well as the one up to `end`: it moves in steps. */
  #isStillRight(window: ByteRange, position: number, end: number, needEnd: number): boolean {
    if (position < window.start || needEnd > window.end) return false;
    const step = (end - position) / STEPS_PER_WINDOW;
    const isLast = end === this.#end && window.end < end;
    return !isLast && position - window.start < step && end - window.end < step;
  }

  /** What is needed as soon as can be: at least the rest of the piece, without which no byte of it is verified. */
  #urgentBytes(position: number, end: number, needBytes: number): number {
    if (needBytes === 0) return 0;
    const { pieceLength } = this.#demand.store.layout;
    const restOfPiece = pieceLength - (position % pieceLength);
    return Math.min(end - position, Math.max(needBytes, restOfPiece, MIN_URGENT_BYTES));
  }

  #stand(stretch: number | undefined): void {
    this.#demand.moved(this.#stretch, stretch);
    this.#stretch = stretch;
  }
}
