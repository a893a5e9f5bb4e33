import type { Bits } from "../base/bits.ts";
import type { ByteRange } from "../base/range.ts";
import type { ReaderId } from "./contract.ts";

/** Pieces in the urgent list at most, over all readers: a list that is walked each time a peer is asked. */
const MAX_URGENT_PIECES = 512;

/** What one reader wishes, in pieces (half-open). */
export interface Want {
  readonly start: number;
  readonly urgentEnd: number;
  readonly end: number;
  /** All pieces from `start` up to here are held: where to look for the first that is not. */
  cursor: number;
}

/** What all readers wish: merged ranges to ask whether a piece is wanted, and the urgent pieces by nearness. */
export class Wants {
  readonly #wants = new Map<ReaderId, Want>();
  #ranges: { start: number; end: number }[] = [];
  #urgent: number[] = [];
  #distance: number[] = [];
  /** All urgent pieces before this place in the list are held. */
  #urgentFrom = 0;
  #isStale = false;

  /** How many readers there are. */
  get readers(): number {
    return this.#wants.size;
  }

  /** All wants, one for each reader. */
  values(): Iterable<Want> {
    return this.#wants.values();
  }

  /** Notes what a reader wishes now; false where nothing changed in terms of pieces. */
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

  /** The reader is gone; false where it was not known. */
  remove(reader: ReaderId): boolean {
    const was = this.#wants.delete(reader);
    this.#isStale ||= was;
    return was;
  }

  /** A piece is no longer held: cursors go back to it. */
  dropped(piece: number): void {
    this.#urgentFrom = 0;
    for (const want of this.#wants.values()) {
      if (piece >= want.start && piece < want.cursor) want.cursor = piece;
    }
  }

  /** Whether some reader wants this piece. */
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

  /** Everything wanted: disjoint ranges in order. */
  get ranges(): readonly { readonly start: number; readonly end: number }[] {
    this.#refresh();
    return this.#ranges;
  }

  /** The urgent pieces of all readers, the nearest to its reader first; each once. */
  get urgent(): readonly number[] {
    this.#refresh();
    return this.#urgent;
  }

  /** The place in {@link urgent} of the first piece that is not held. */
  firstUrgent(have: Bits): number {
    const { urgent } = this;
    while (this.#urgentFrom < urgent.length && have.has(urgent[this.#urgentFrom]!)) this.#urgentFrom++;
    return this.#urgentFrom;
  }

  /** How many pieces lie between the i-th urgent piece and its reader. */
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

  /** Readers take turns: everybody's next piece, then everybody's second, and so on. */
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
