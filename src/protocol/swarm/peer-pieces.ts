import { Bits } from "../../base/bits.ts";

/** The largest piece count that the metainfo decoder accepts: limits what is stored before the count is known. */
const MAX_PIECES = 2_097_152;

/** The pieces that a peer has. Until the metadata is known, its messages are stored unchecked. */
export class PeerPieces {
  /** Known once the layout is known. */
  bits: Bits | undefined;
  /** Number of the peer's pieces that this engine lacks. */
  useful = 0;
  #hasAnnouncedAll = false;
  #early: Uint8Array<ArrayBuffer> | undefined;
  #earlyIsBitfield = false;

  constructor(pieceCount: number | undefined) {
    if (pieceCount !== undefined) this.bits = new Bits(pieceCount);
  }

  /** Whether the peer has all pieces. */
  get isAll(): boolean {
    return this.bits ? this.bits.count === this.bits.length : this.#hasAnnouncedAll;
  }

  /** The share of pieces that the peer has, 0 to 1. */
  get progress(): number {
    if (!this.bits) return this.#hasAnnouncedAll ? 1 : 0;
    return this.bits.length === 0 ? 1 : this.bits.count / this.bits.length;
  }

  has(piece: number): boolean {
    return this.bits?.has(piece) ?? false;
  }

  /** BEP 6 `have all`. */
  setAll(): void {
    this.#hasAnnouncedAll = true;
    this.bits?.setAll();
  }

  /** BEP 6 `have none`. */
  setNone(): void {
    this.#hasAnnouncedAll = false;
    this.#early = undefined;
    this.bits?.clearAll();
  }

  /** Takes a bitfield; returns false if it is malformed (BEP 3). */
  load(wire: Uint8Array): boolean {
    if (this.bits) return this.bits.load(wire);
    if (wire.length * 8 >= MAX_PIECES + 8) return false;
    this.#early = wire.slice();
    this.#earlyIsBitfield = true;
    return true;
  }

  /** Adds one piece; returns "bad" if there is no such piece. */
  add(piece: number): "new" | "known" | "bad" {
    if (this.bits) {
      if (piece >= this.bits.length) return "bad";
      return this.bits.set(piece) ? "new" : "known";
    }
    if (piece >= MAX_PIECES) return "bad";
    const at = piece >> 3;
    if (!this.#early || at >= this.#early.length) {
      const grown = new Uint8Array(Math.max(64, 2 * (at + 1)));
      if (this.#early) grown.set(this.#early);
      this.#early = grown;
      this.#earlyIsBitfield = false;
    }
    this.#early[at]! |= 0x80 >> (piece & 7);
    return "new";
  }

  /** The layout is known: returns false if the earlier messages do not fit it. */
  settle(pieceCount: number): boolean {
    const bits = new Bits(pieceCount);
    const early = this.#early;
    this.bits = bits;
    this.#early = undefined;
    if (this.#hasAnnouncedAll) bits.setAll();
    else if (early && this.#earlyIsBitfield) return bits.load(early);
    else if (early) {
      for (let piece = 0; piece < early.length * 8; piece++) {
        if ((early[piece >> 3]! & (0x80 >> (piece & 7))) !== 0 && !bits.set(piece)) return false;
      }
    }
    return true;
  }
}
