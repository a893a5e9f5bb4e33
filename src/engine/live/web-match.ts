import type { Sha256 } from "../../base/signature.ts";
import type { PacketStretch } from "../../media/packet-stretch.ts";
import { pidAt, TS_PACKET_BYTES } from "../../media/ts-packet.ts";
import { chunkRange } from "../../wire/live-chunks.ts";
import type { PieceHeader } from "../../wire/live-header.ts";
import { isChunkOf } from "../../wire/live-trust.ts";
import { NO_SHIFT, type PieceDraft, pieceDraft, type TableShift } from "./web-draft.ts";

/** What came of looking for a piece. `elsewhere`: not in these bytes; `before`, `after`: it begins before them, or ends behind them;
 * `unlike`: it should be there, and is not; `unknown`: nothing tells where it is. */
export type Match =
  | { readonly kind: "found"; readonly bytes: Uint8Array }
  | { readonly kind: "elsewhere" | "before" | "after" | "unlike" | "unknown" };

/** Where a piece ends in the stretch, and what its tables are counted like from there on. */
interface Place {
  readonly next: number;
  readonly shift: TableShift;
}

/** So much is hashed for one piece at most: 60 ms. */
const MAX_HASHED_BYTES = 12 * 1024 * 1024;
/** So many pieces are gone back to find one that has a clock. */
const MAX_BACK = 16;
const MAX_PLACES = 256;

/**
 * Finds pieces in the packets that the source made them of. The clock in a header tells about where, the hash of a chunk exactly where;
 * from there on piece follows piece. What the source changed (live protocol: Pieces of MPEG-TS) is done over again.
 */
export class WebMatch {
  readonly stretch: PacketStretch;
  readonly #stripeCount: number;
  readonly #sha256: Sha256;
  readonly #places = new Map<number, Place>();
  #epoch = -1;
  #shift: TableShift = NO_SHIFT;
  #hashedBytes = 0;

  constructor(stretch: PacketStretch, stripeCount: number, sha256: Sha256) {
    this.stretch = stretch;
    this.#stripeCount = stripeCount;
    this.#sha256 = sha256;
  }

  /** The bytes of a piece. `headerOf` gives those of pieces before. */
  find(header: PieceHeader, headerOf: (seq: number) => PieceHeader | undefined): Match {
    this.#hashedBytes = 0;
    if (header.epoch !== this.#epoch) this.#places.clear();
    this.#epoch = header.epoch;
    let first = header;
    for (let back = 0; back < MAX_BACK && !this.#isPlaced(first); back++) {
      const before = headerOf(first.seq - 1);
      if (!before || before.epoch !== header.epoch) break;
      first = before;
    }
    let match = this.#one(first);
    for (let seq = first.seq + 1; seq <= header.seq; seq++) {
      const next = seq === header.seq ? header : headerOf(seq);
      if (!next) return { kind: "unknown" };
      match = this.#one(next);
    }
    return match;
  }

  /** Whether it is known, without those before it, about where the piece is. */
  #isPlaced({ seq, clockReference }: PieceHeader): boolean {
    return clockReference !== undefined || this.#places.has(seq - 1);
  }

  #one(header: PieceHeader): Match {
    const before = this.#places.get(header.seq - 1);
    if (before && !header.isDiscontinuity) {
      const draft = this.#tried(header, before.next, before.shift);
      if (draft === "short") return { kind: before.next < this.stretch.start ? "before" : "after" };
      if (draft) return this.#found(header, draft);
    }
    const { clockReference } = header;
    if (clockReference === undefined) return { kind: "unknown" };
    const { clocks } = this.stretch;
    let kind: "elsewhere" | "before" | "after" | "unlike" = "elsewhere";
    for (const [i, clock] of clocks.entries()) {
      if (clock.reference !== clockReference) continue;
      kind = i === 0 ? "before" : "unlike";
      // The clock is the first one of the piece: that begins after the clock before.
      const earliest = Math.max(i === 0 ? this.stretch.start : clocks[i - 1]!.at + 1, this.stretch.start);
      for (let at = clock.at; at >= earliest && this.#hashedBytes < MAX_HASHED_BYTES; at--) {
        const draft = this.#tried(header, at, this.#shift);
        if (draft === "short") kind = "after";
        else if (draft) return this.#found(header, draft);
      }
    }
    return { kind };
  }

  #found(header: PieceHeader, { bytes, next, shift }: PieceDraft): Match {
    this.#places.set(header.seq, { next, shift });
    this.#shift = shift;
    if (this.#places.size > MAX_PLACES) this.#places.delete(this.#places.keys().next().value!);
    return { kind: "found", bytes };
  }

  /** The piece as it would be if it began at `at`; undefined where its hashes say that it does not. */
  #tried(header: PieceHeader, at: number, shift: TableShift): PieceDraft | "short" | undefined {
    this.#hashedBytes += header.pieceBytes / 16; // Copying costs, too.
    const draft = pieceDraft(this.stretch, header, at, shift);
    if (draft === undefined) return "short";
    if (!this.#fits(header, this.#probe(draft.bytes, header), draft.bytes)) return undefined;
    return this.#isRight(header, draft) ? draft : this.#recounted(header, at);
  }

  /** The piece with its tables counted as the source counted them: most often PAT and PMT are as far off. */
  #recounted(header: PieceHeader, at: number): PieceDraft | undefined {
    const draft = pieceDraft(this.stretch, header, at, NO_SHIFT)!;
    const stripe = this.#withTables(draft.bytes, header);
    for (let far = 0; far < 16; far++) {
      for (let pat = 0; pat < 16 && this.#hashedBytes < MAX_HASHED_BYTES; pat++) {
        this.#hashedBytes += header.pieceBytes / 16;
        const other = pieceDraft(this.stretch, header, at, { pat, pmt: (pat + far) & 15 })!;
        if (this.#fits(header, stripe, other.bytes) && this.#isRight(header, other)) return other;
      }
    }
    return undefined;
  }

  /** Whether every chunk is that of the header. */
  #isRight(header: PieceHeader, { bytes }: PieceDraft): boolean {
    for (let stripe = 0; stripe < this.#stripeCount; stripe++)
      if (!this.#fits(header, stripe, bytes)) return false;
    return true;
  }

  /** The chunk to try a place with: one without tables, since nobody knows yet how those are counted; 0 where all have some. */
  #probe(bytes: Uint8Array, header: PieceHeader): number {
    for (let stripe = 0; stripe < this.#stripeCount; stripe++) {
      const { start, end } = chunkRange(header.pieceBytes, this.#stripeCount, stripe);
      if (start < end && !this.#hasTables(bytes, header, stripe)) return stripe;
    }
    return 0;
  }

  /** The first chunk with tables; 0 where none has. */
  #withTables(bytes: Uint8Array, header: PieceHeader): number {
    for (let stripe = 0; stripe < this.#stripeCount; stripe++)
      if (this.#hasTables(bytes, header, stripe)) return stripe;
    return 0;
  }

  #hasTables(bytes: Uint8Array, { pieceBytes }: PieceHeader, stripe: number): boolean {
    const { start, end } = chunkRange(pieceBytes, this.#stripeCount, stripe);
    for (let at = start; at < end; at += TS_PACKET_BYTES)
      if (this.stretch.isTable(pidAt(bytes, at))) return true;
    return false;
  }

  #fits(header: PieceHeader, stripe: number, bytes: Uint8Array): boolean {
    const { start, end } = chunkRange(header.pieceBytes, this.#stripeCount, stripe);
    this.#hashedBytes += end - start;
    return isChunkOf(header, stripe, bytes.subarray(start, end), this.#sha256);
  }
}
