import { equalBytes, toHex } from "../../base/bytes.ts";
import type { SignedHeader } from "./messages.ts";
import type { LiveState } from "./state.ts";

/** Other versions of pieces that are remembered, so that none costs a signature twice. */
const MAX_OTHERS = 1_024;

/** The chain of headers: each names the one before it, so nobody with a copied key can slip a piece in between, and a
 * source that begins again tells that the numbers since then were never made. */
export class Chain {
  readonly #state: LiveState;
  readonly #others = new Set<string>();

  constructor(state: LiveState) {
    this.#state = state;
  }

  /** Whether a header that is not known yet cannot stand next to those that are. */
  isBroken({ value, bytes }: SignedHeader): boolean {
    const { window, setup } = this.#state;
    if (window.isGap(value.seq)) return true;
    const before = window.piece(value.seq - 1);
    if (before && !equalBytes(setup.hash(before.header.bytes), value.previousHash)) return true;
    const next = window.piece(value.seq + 1);
    return next !== undefined && !equalBytes(setup.hash(bytes), next.header.value.previousHash);
  }

  /** A header was added: where it and a neighbour name each other, nothing was made between them. */
  added({ value, bytes }: SignedHeader, below: SignedHeader | undefined): void {
    const { window, setup } = this.#state;
    if (below && value.seq > below.value.seq + 1) {
      const isNext = equalBytes(setup.hash(below.bytes), value.previousHash);
      if (isNext) window.addGap(below.value.seq + 1, value.seq);
    }
    if (value.seq >= window.head || window.piece(value.seq + 1)) return;
    const above = window.above(value.seq);
    if (!above || window.isGap(value.seq + 1)) return;
    if (equalBytes(setup.hash(bytes), above.header.value.previousHash)) {
      window.addGap(value.seq + 1, above.seq);
    }
  }

  /** Whether this other version is known to be one. */
  isOther({ bytes }: SignedHeader): boolean {
    return this.#others.size > 0 && this.#others.has(toHex(this.#state.setup.hash(bytes)));
  }

  /** A genuine header that cannot stand beside what we have: two programs sign, or one that is broken. */
  forked(header: SignedHeader): void {
    this.#others.add(toHex(this.#state.setup.hash(header.bytes)));
    if (this.#others.size > MAX_OTHERS) this.#others.delete(this.#others.keys().next().value!);
    this.#state.forkedAt = this.#state.now;
    this.#state.emit({ kind: "forked", seq: header.value.seq, header: header.value });
  }
}
