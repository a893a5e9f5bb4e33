import type { Bits } from "../../base/bits.ts";
import type { ByteRange } from "../../base/range.ts";
import type { ReaderId } from "./contract.ts";

/** Limit on the urgent pieces of all readers: the list is scanned each time blocks are requested from a peer. */
const MAX_URGENT_PIECES = 512;

/** The demand of one reader, as half-open ranges of pieces. */
interface Want {
  readonly start: number;
  readonly urgentEnd: number;
  readonly end: number;
  /** All pieces in [start, cursor) are held. */
  cursor: number;
}

/** The demand of all readers: merged ranges, and the urgent pieces by distance. */
export class Wants {
  readonly #wants = new Map<ReaderId, Want>();
  #ranges: { start: number; end: number }[] = [];
  #urgent: number[] = [];
  #distance: number[] = [];
  /** All urgent pieces before this index are held. */
  #urgentFrom = 0;
  #isStale = false;

  /** Number of readers. */
  get readers(): number {
    return this.#wants.size;
  }

  /** The demand of each reader. */
  values(): Iterable<Want> {
    return this.#wants.values();
  }

  /** Sets the demand of a reader; returns false if its pieces have not changed. */
  set(
    reader: ReaderId,
    range: ByteRange,
    urgentBytes: number,
    pieceLength: number,
    pieceCount: number,
  ): boolean {
    const start = Math.min(pieceCount, Math.floor(range.start / pieceLength));
    const end = Math.min(pieceCount, Math.ceil(range.end / pieceLength));
    const urgent = Math.min(range.end, range.start + Math.max(urgentBytes, 1));
    const urgentEnd = Math.min(end, Math.ceil(urgent / pieceLength));
    const old = this.#wants.get(reader);
    if (old && old.start === start && old.end === end && old.urgentEnd === urgentEnd) return false;
    const cursor = old && start >= old.start && start <= old.cursor ? Math.min(old.cursor, end) : start;
    this.#wants.set(reader, { start, end, urgentEnd, cursor });
    this.#isStale = true;
    return true;
  }

  /** Removes a reader; returns false if it is unknown. */
  remove(reader: ReaderId): boolean {
    const was = this.#wants.delete(reader);
    this.#isStale ||= was;
    return was;
  }

  /** A piece is no longer held: moves cursors back to it. */
  dropped(piece: number): void {
    this.#urgentFrom = 0;
    for (const want of this.#wants.values()) {
      if (piece >= want.start && piece < want.cursor) want.cursor = piece;
    }
  }

  /** Whether a reader wants this piece. */
  includes(piece: number): boolean {
    this.#refresh();
    let low = 0;
    let high = this.#ranges.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#ranges[middle]!.end <= piece) low = middle + 1;
      else high = middle;
    }
    return low < this.#ranges.length && this.#ranges[low]!.start <= piece;
  }

  /** Disjoint ranges of all wanted pieces, in order. */
  get ranges(): readonly { readonly start: number; readonly end: number }[] {
    this.#refresh();
    return this.#ranges;
  }

  /** The urgent pieces of all readers, each once, nearest to its reader first. */
  get urgent(): readonly number[] {
    this.#refresh();
    return this.#urgent;
  }

  /** Returns the index in {@link urgent} of the first piece that is not held. */
  firstUrgent(have: Bits): number {
    const { urgent } = this;
    while (this.#urgentFrom < urgent.length && have.has(urgent[this.#urgentFrom]!)) this.#urgentFrom++;
    return this.#urgentFrom;
  }

  /** By index in {@link urgent}: the distance in pieces from the reader. */
  get distances(): readonly number[] {
    this.#refresh();
    return this.#distance;
  }

  #refresh(): void {
    if (!this.#isStale) return;
    this.#isStale = false;
    const wants = [...this.#wants.values()].filter((want) => want.start < want.end);
    wants.sort((a, b) => a.start - b.start);
    this.#ranges = [];
    for (const want of wants) {
      const last = this.#ranges.at(-1);
      if (last && want.start <= last.end) last.end = Math.max(last.end, want.end);
      else this.#ranges.push({ start: want.start, end: want.end });
    }
    this.#collectUrgent(wants);
  }

  /** Merges the urgent pieces of all readers by distance: the first piece of each reader, then the second, and so on. */
  #collectUrgent(wants: readonly Want[]): void {
    const seen = new Set<number>();
    this.#urgent = [];
    this.#distance = [];
    this.#urgentFrom = 0;
    let left = wants;
    for (let step = 0; left.length > 0 && this.#urgent.length < MAX_URGENT_PIECES; step++) {
      left = left.filter((want) => want.start + step < want.urgentEnd);
      for (const want of left) {
        const piece = want.start + step;
        if (seen.has(piece)) continue;
        seen.add(piece);
        this.#urgent.push(piece);
        this.#distance.push(step);
      }
    }
  }
}
