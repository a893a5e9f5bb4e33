import { concatBytes } from "../../base/bytes.ts";
import { SluiceError } from "../../base/errors.ts";
import type { ListedSegment, PieceSegments } from "../../transfer/piece-segments.ts";
import type { PieceHeader } from "../../wire/live/header.ts";
import type { PieceSink } from "../contract.ts";
import type { LiveWindow } from "./live-window.ts";
import { type KeptSegment, readRange } from "./live-window-segment.ts";
import { encodePieces, type StoredPiece } from "./verified-pieces.ts";

/** Segments of this time can be requested: a page has as much in its own window. */
const LOGGED_MS = 120_000;
/** Limit of headers, 284 or 444 bytes each: this time in pieces of 50 ms. */
const MAX_PIECES = 2_400;

/** Where the bytes of a piece are in the window. */
interface Place {
  readonly segment: KeptSegment;
  readonly at: number;
  readonly bytes: number;
}

interface LoggedPiece {
  readonly signed: Uint8Array;
  readonly timestampMs: number;
  readonly places: readonly Place[];
}

/** Keeps the signed headers of the pieces in a window, so that pages can get its segments as pieces, which they verify. */
export class PieceLog implements PieceSink, PieceSegments {
  readonly #window: LiveWindow;
  /** Oldest first. */
  #pieces: LoggedPiece[] = [];
  /** What responses still send, by the last piece: many pages that read slowly share one copy. */
  readonly #encoded = new WeakMap<
    LoggedPiece,
    { readonly first: LoggedPiece; readonly bytes: WeakRef<Uint8Array<ArrayBuffer>> }
  >();

  constructor(window: LiveWindow) {
    this.#window = window;
  }

  piece(header: PieceHeader, chunks: readonly Uint8Array[], signed: Uint8Array): void {
    const before = this.#window.segments.at(-1);
    const at = before?.bytes ?? 0;
    this.#window.piece(header, chunks);
    const after = this.#window.segments.at(-1);
    const places: Place[] = [];
    if (before && before.bytes > at) places.push({ segment: before, at, bytes: before.bytes - at });
    if (after && after !== before) places.push({ segment: after, at: 0, bytes: after.bytes });
    // Bytes before the first key frame after a loss are in no segment.
    if (!after || places.reduce((sum, { bytes }) => sum + bytes, 0) !== header.pieceBytes) return;
    this.#pieces.push({ signed, timestampMs: header.timestampMs, places });
    const oldestMs = header.timestampMs - LOGGED_MS;
    if (this.#pieces[0]!.timestampMs < oldestMs - LOGGED_MS / 8 || this.#pieces.length > MAX_PIECES)
      this.#pieces = this.#pieces.slice(-MAX_PIECES).filter(({ timestampMs }) => timestampMs >= oldestMs);
  }

  skip(seq: number): void {
    this.#window.skip(seq);
  }

  restarted(): void {
    this.#window.restarted();
  }

  list(): readonly ListedSegment[] {
    const { segments } = this.#window;
    const first = this.#pieces.find(({ places }) => places.length > 0 && !places[0]!.segment.isGone);
    const listed: ListedSegment[] = [];
    for (let at = segments.length - 1; at >= 0; at--) {
      const segment = segments[at]!;
      if (!segment.isClosed) continue;
      const later = listed.at(-1);
      const { number, startMs } = segment.facts;
      const isNext = later === undefined || later.number === number + 1;
      if (!first || !segment.isWhole || startMs < first.timestampMs || !isNext) break;
      listed.push({ number, startMs: Math.round(startMs), durationMs: Math.round(segment.durationMs) });
      // Clocks jump at its start.
      if (segment.isDiscontinuous) break;
    }
    return listed.reverse();
  }

  async segment(number: number): Promise<Uint8Array<ArrayBuffer>> {
    const segment = this.#window.segments.findLast(
      ({ facts, isWhole }) => isWhole && facts.number === number,
    );
    const isIn = ({ places }: LoggedPiece) => places.some((place) => place.segment === segment);
    const first = segment ? this.#pieces.findIndex(isIn) : -1;
    const last = this.#pieces.findLastIndex(isIn);
    if (first < 0) throw new SluiceError("no_such_segment", "the segment has left the live window");
    // The piece after it shows that the segment is complete.
    return this.#read(this.#pieces.slice(first, last + 2));
  }

  async recent(): Promise<Uint8Array<ArrayBuffer>> {
    const newest = this.#window.segments.findLast(({ isWhole }) => isWhole);
    const first = this.#pieces.findIndex(({ places }) => places.some(({ segment }) => segment === newest));
    return this.#read(newest && first >= 0 ? this.#pieces.slice(first) : []);
  }

  async #read(pieces: readonly LoggedPiece[]): Promise<Uint8Array<ArrayBuffer>> {
    const [first, last] = [pieces[0], pieces.at(-1)];
    const known = last && this.#encoded.get(last);
    const shared = known?.first === first ? known?.bytes.deref() : undefined;
    if (shared) return shared;
    const read: StoredPiece[] = [];
    for (const { signed, places } of pieces) {
      const parts: Uint8Array[] = [];
      for (const { segment, at, bytes } of places)
        parts.push(await readRange(this.#window, segment, at, at + bytes));
      read.push({ header: signed, media: concatBytes(parts) });
    }
    const bytes = encodePieces(read);
    if (first && last) this.#encoded.set(last, { first, bytes: new WeakRef(bytes) });
    return bytes;
  }
}
