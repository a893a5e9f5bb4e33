import type { Sha256 } from "../../base/signature.ts";
import type { PacketStretch } from "../../media/packet-stretch.ts";
import { pidAt, TS_PACKET_BYTES } from "../../media/ts-packet.ts";
import { chunkRange } from "../../wire/live/chunks.ts";
import type { PieceHeader } from "../../wire/live/header.ts";
import { isChunkOf } from "../../wire/live/trust.ts";
import { NO_SHIFT, type PieceDraft, pieceDraft, type TableShift } from "./piece-draft.ts";

/** The result of a search. `elsewhere`: not in these bytes; `before`, `after`: it starts before them, or ends after
 * them; `unlike`: it should be in them and is not; `unknown`: its position is not known. */
export type Match =
  | { readonly kind: "found"; readonly bytes: Uint8Array }
  | { readonly kind: "elsewhere" | "before" | "after" | "unlike" | "unknown" };

/** Where a piece ends in the stretch, and the table shift from there on. */
interface PieceEnd {
  readonly next: number;
  readonly shift: TableShift;
}

/** Limit of bytes hashed per piece: 60 ms. */
const MAX_HASHED_BYTES = 12 * 1024 * 1024;
/** How many pieces to go back for one with a clock value. */
const MAX_BACK = 16;
const MAX_ENDS = 256;

/**
 * Finds pieces in the source's input. The clock value in a header gives the approximate position, the hash of a chunk
 * the exact one; from there, pieces follow each other. Changes made by the source (live protocol: Pieces of MPEG-TS)
 * are repeated.
 */
export class WebMatch {
  readonly stretch: PacketStretch;
  readonly #stripeCount: number;
  readonly #sha256: Sha256;
  readonly #ends = new Map<number, PieceEnd>();
  #epoch = -1;
  #shift: TableShift = NO_SHIFT;
  #hashedBytes = 0;

  constructor(stretch: PacketStretch, stripeCount: number, sha256: Sha256) {
    this.stretch = stretch;
    this.#stripeCount = stripeCount;
    this.#sha256 = sha256;
  }

  /** Searches a piece. `headerOf` returns the headers of earlier pieces. */
  find(header: PieceHeader, headerOf: (seq: number) => PieceHeader | undefined): Match {
    this.#hashedBytes = 0;
    if (header.epoch !== this.#epoch) this.#ends.clear();
    this.#epoch = header.epoch;
    let first = header;
    for (let back = 0; back < MAX_BACK && !this.#hasPosition(first); back++) {
      const before = headerOf(first.seq - 1);
      if (!before || before.epoch !== header.epoch) break;
      first = before;
    }
    let match = this.#locate(first);
    for (let seq = first.seq + 1; seq <= header.seq; seq++) {
      const next = seq === header.seq ? header : headerOf(seq);
      if (!next) return { kind: "unknown" };
      match = this.#locate(next);
    }
    return match;
  }

  /** Whether the approximate position is known without earlier pieces. */
  #hasPosition({ seq, clockReference }: PieceHeader): boolean {
    return clockReference !== undefined || this.#ends.has(seq - 1);
  }

  #locate(header: PieceHeader): Match {
    const before = this.#ends.get(header.seq - 1);
    if (before && !header.isDiscontinuity) {
      const draft = this.#tryAt(header, before.next, before.shift);
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
      // The clock value is the first one in the piece, so the piece begins after the previous clock value.
      const earliest = Math.max(i === 0 ? this.stretch.start : clocks[i - 1]!.at + 1, this.stretch.start);
      for (let at = clock.at; at >= earliest && this.#hashedBytes < MAX_HASHED_BYTES; at--) {
        const draft = this.#tryAt(header, at, this.#shift);
        if (draft === "short") kind = "after";
        else if (draft) return this.#found(header, draft);
      }
    }
    return { kind };
  }

  #found(header: PieceHeader, { bytes, next, shift }: PieceDraft): Match {
    this.#ends.set(header.seq, { next, shift });
    this.#shift = shift;
    if (this.#ends.size > MAX_ENDS) this.#ends.delete(this.#ends.keys().next().value!);
    return { kind: "found", bytes };
  }

  /** Returns the piece that begins at `at`; undefined if the hashes do not match, `"short"` if packets are missing. */
  #tryAt(header: PieceHeader, at: number, shift: TableShift): PieceDraft | "short" | undefined {
    this.#hashedBytes += header.pieceBytes / 16; // The copy takes time, too.
    const draft = pieceDraft(this.stretch, header, at, shift);
    if (draft === undefined) return "short";
    if (!this.#fits(header, this.#probe(draft.bytes, header), draft.bytes)) return undefined;
    return this.#isRight(header, draft) ? draft : this.#recounted(header, at);
  }

  /** Searches the table shift. PAT and PMT usually have the same one. */
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

  /** Whether all chunks match the header. */
  #isRight(header: PieceHeader, { bytes }: PieceDraft): boolean {
    for (let stripe = 0; stripe < this.#stripeCount; stripe++)
      if (!this.#fits(header, stripe, bytes)) return false;
    return true;
  }

  /** Returns the chunk to test positions with: one without tables, because their shift is not known yet; 0 if all
   * contain tables. */
  #probe(bytes: Uint8Array, header: PieceHeader): number {
    for (let stripe = 0; stripe < this.#stripeCount; stripe++) {
      const { start, end } = chunkRange(header.pieceBytes, this.#stripeCount, stripe);
      if (start < end && !this.#hasTables(bytes, header, stripe)) return stripe;
    }
    return 0;
  }

  /** Returns the first chunk with tables; 0 if there is none. */
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
