import type { ByteRange } from "../base/range.ts";
import type { ReaderId } from "../protocol/swarm/contract.ts";
import type { PieceStore } from "../storage/piece-store.ts";

/** Initial read-ahead of a reader, before its rate is known: half a second at 128 Mbit/s. */
export const FIRST_READ_AHEAD_BYTES = 8 * 1024 * 1024;
/** Maximum read-ahead of a reader: more costs memory and gains no speed. */
const MAX_READ_AHEAD_BYTES = 32 * 1024 * 1024;
/** The window moves in steps of 1/8 of its size, so that not every chunk causes an input to the swarm. */
const STEPS_PER_WINDOW = 8;
/** At least this much is urgent, however slow the reader: one request to each of many peers. */
const MIN_URGENT_BYTES = 1024 * 1024;

/** Receives the windows of readers; implemented by the swarm. */
export interface WantSink {
  want(reader: ReaderId, range: ByteRange, urgentBytes: number): void;
  unwant(reader: ReaderId): void;
}

/** Read-ahead of all readers if a disk cache stores it: half a minute of an 8 Mbit/s film. */
const DISK_READ_AHEAD_BYTES = 32 * 1024 * 1024;

/** The readers of one transfer: assigns their ids and divides the read-ahead budget among them. */
export class Demand {
  readonly store: PieceStore;
  readonly #sink: WantSink;
  readonly #budgetBytes: number;
  /** Number of readers by region of the content. */
  readonly #regions = new Map<number, number>();
  #nextId: ReaderId = 1;

  constructor(store: PieceStore, sink: WantSink, memoryLimitBytes: number) {
    this.store = store;
    this.#sink = sink;
    // The other half is for pieces that were read recently or are being received.
    this.#budgetBytes = Math.max(memoryLimitBytes / 2, store.isOnDisk ? DISK_READ_AHEAD_BYTES : 0);
  }

  /** Creates a reader of the bytes up to `end` (of the whole content). It wants nothing before its first `moveTo`. */
  reader(end: number): Reader {
    return new Reader(this, this.#sink, this.#nextId++, end);
  }

  /** Current limit of one reader's read-ahead in bytes. Readers in the same region count once. */
  get readAheadLimitBytes(): number {
    const regions = Math.max(1, this.#regions.size);
    return Math.max(
      Math.min(MAX_READ_AHEAD_BYTES, this.#budgetBytes / regions),
      // One piece to read, and one to receive meanwhile.
      2 * this.store.layout.pieceLength,
    );
  }

  /** Records that a reader moved to another region; undefined: not in the content. */
  regionChanged(from: number | undefined, to: number | undefined): void {
    if (from === to) return;
    if (to !== undefined) this.#regions.set(to, (this.#regions.get(to) ?? 0) + 1);
    if (from === undefined) return;
    const left = this.#regions.get(from)! - 1;
    if (left > 0) this.#regions.set(from, left);
    else this.#regions.delete(from);
  }
}

/** One position in the content, and the window after it that is wanted. */
export class Reader {
  readonly #demand: Demand;
  readonly #sink: WantSink;
  readonly #id: ReaderId;
  readonly #end: number;
  #window: ByteRange | undefined;
  #region: number | undefined;

  constructor(demand: Demand, sink: WantSink, id: ReaderId, end: number) {
    this.#demand = demand;
    this.#sink = sink;
    this.#id = id;
    this.#end = end;
  }

  /**
   * Moves the reader to `position` and wants the `aheadBytes` after it, up to the limit. The first `needBytes` are wanted
   * regardless of the limit, and are urgent.
   */
  moveTo(position: number, aheadBytes: number, needBytes: number): void {
    const { store } = this.#demand;
    const limit = Math.max(needBytes, Math.min(aheadBytes, this.#demand.readAheadLimitBytes));
    const end = Math.min(this.#end, position + limit);
    const window = this.#window;
    if (window && this.#isClose(window, position, end, Math.min(end, position + needBytes))) return;
    if (position >= end) {
      this.close();
      return;
    }
    this.#enterRegion(Math.floor(position / Math.max(FIRST_READ_AHEAD_BYTES, store.layout.pieceLength)));
    this.#window = { start: position, end };
    store.moveWindow(window, this.#window);
    this.#sink.want(this.#id, this.#window, this.#urgentBytes(position, end, needBytes));
  }

  /** Removes the window. */
  close(): void {
    if (this.#window === undefined) return;
    const window = this.#window;
    this.#window = undefined;
    this.#enterRegion(undefined);
    this.#sink.unwant(this.#id);
    this.#demand.store.moveWindow(window, undefined);
  }

  /** Returns true if the present window differs from the new one by less than a step. */
  #isClose(window: ByteRange, position: number, end: number, needEnd: number): boolean {
    if (position < window.start || needEnd > window.end) return false;
    const step = (end - position) / STEPS_PER_WINDOW;
    const isLast = end === this.#end && window.end < end;
    return !isLast && position - window.start < step && end - window.end < step;
  }

  /** How many bytes are urgent: at least the rest of the piece, because only whole pieces are verified. */
  #urgentBytes(position: number, end: number, needBytes: number): number {
    if (needBytes === 0) return 0;
    const { pieceLength } = this.#demand.store.layout;
    const restOfPiece = pieceLength - (position % pieceLength);
    return Math.min(end - position, Math.max(needBytes, restOfPiece, MIN_URGENT_BYTES));
  }

  #enterRegion(region: number | undefined): void {
    this.#demand.regionChanged(this.#region, region);
    this.#region = region;
  }
}
