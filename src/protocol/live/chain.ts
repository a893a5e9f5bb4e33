import { equalBytes, toHex } from "../../base/bytes.ts";
import { MAX_VERSIONS, PROOF_CHUNKS, SOURCE_PAUSE_MS } from "./limits.ts";
import type { SignedHeader, WholeChunk } from "./messages.ts";
import type { LivePeer } from "./peer.ts";
import type { LiveState } from "./state.ts";
import type { LivePiece } from "./window.ts";

/** Maximum number of remembered headers of other versions: half a minute of two such versions. Each has at most 444
 * bytes. */
const MAX_OTHERS = 512;

/** The chain of headers. Each header names its predecessor, so a copied key cannot insert a piece
 * unnoticed, and a source that restarts shows which numbers were never made (live protocol: What makes a
 * header invalid). If the key signs several versions of the stream, the chain decides which one to follow
 * (live protocol: Forks). */
export class Chain {
  readonly #state: LiveState;
  /** Verified headers that contradict the window, by hash, the oldest first. */
  readonly #others = new Map<string, SignedHeader>();

  constructor(state: LiveState) {
    this.#state = state;
  }

  /** The known pieces that a header contradicts: another version of it, a neighbour that cannot follow or precede it,
   * or the end of a gap that contains it. */
  rivals({ value, bytes }: SignedHeader): LivePiece[] {
    const { window, setup } = this.#state;
    const { seq } = value;
    const rivals: LivePiece[] = [];
    const gapEnd = window.gapEnd(seq);
    const end = gapEnd === undefined ? undefined : window.piece(gapEnd);
    if (end) rivals.push(end);
    const same = window.piece(seq);
    if (same && !equalBytes(same.header.bytes, bytes)) rivals.push(same);
    const before = window.piece(seq - 1);
    if (before && !equalBytes(setup.hash(before.header.bytes), value.previousHash)) rivals.push(before);
    const next = window.piece(seq + 1);
    if (next && !equalBytes(setup.hash(bytes), next.header.value.previousHash)) rivals.push(next);
    return rivals;
  }

  /** Whether a header replaces all pieces that it contradicts. A header that continues the pieces with data comes
   * first, then one with a verified chunk (`hasData`) from a witness, then the one that arrived first. */
  prevails(header: SignedHeader, rivals: readonly LivePiece[], hasData: boolean): boolean {
    const { window, nextSeq } = this.#state;
    if (window.isGap(header.value.seq) && rivals.length === 0) return false;
    const rank = (this.#continues(header) ? 2 : 0) + (hasData ? 1 : 0);
    return rivals.every((rival) => {
      const isPast = rival.seq < nextSeq;
      const hasOwn = window.hasData(rival);
      if (isPast && hasOwn) return false;
      return rank > (!isPast && this.#continues(rival.header) ? 2 : 0) + (hasOwn ? 1 : 0);
    });
  }

  /** After a header was added: if it names the next lower header, or the next higher one names it, the
   * numbers between them were never made. */
  added({ value, bytes }: SignedHeader, below: SignedHeader | undefined): void {
    const { window, setup } = this.#state;
    this.#others.delete(this.#key(bytes));
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

  /** Whether a chunk from this peer may decide between versions: the peer has delivered before, or no peer delivers. */
  isWitness({ usefulChunks }: LivePeer): boolean {
    const { now, dataAt } = this.#state;
    return usefulChunks >= PROOF_CHUNKS || now - dataAt > SOURCE_PAUSE_MS;
  }

  /** Removes a piece of another version, and remembers its header. */
  remove(piece: LivePiece): void {
    const { window, peers } = this.#state;
    // If playback has passed over the numbers below, which the other version never made, it returns to them.
    const below = window.below(piece.seq);
    if (this.#state.nextSeq === piece.seq && below && window.isGap(below.seq + 1))
      this.#state.nextSeq = below.seq + 1;
    window.remove(piece);
    // The other version may have moved the time line.
    this.#state.timeline.reset();
    this.#remember(piece.header);
    for (const peer of peers.values()) peer.forgetSent(piece.seq);
  }

  /** Whether the header is known to belong to another version. */
  isKnownFork({ bytes }: SignedHeader): boolean {
    return this.#others.size > 0 && this.#others.has(this.#key(bytes));
  }

  /** Remembers and reports a genuine header that contradicts the known ones: two programs sign with the key,
   * or the source is broken. */
  forked(header: SignedHeader): void {
    this.#remember(header);
    this.#state.forkedAt = this.#state.now;
    this.#state.emit({ kind: "forked", seq: header.value.seq, header: header.value });
  }

  /** The remembered versions of piece `seq` of the current epoch. */
  versionsOf(seq: number): SignedHeader[] {
    const { epoch } = this.#state;
    return [...this.#others.values()].filter(({ value }) => value.seq === seq && value.epoch === epoch);
  }

  /** The remembered version that a chunk belongs to. */
  versionWith({ seq, stripe, bytes }: WholeChunk): SignedHeader | undefined {
    if (this.#others.size === 0) return undefined;
    return this.versionsOf(seq).find((header) => this.#state.setup.isValidChunk(header, stripe, bytes));
  }

  /** Whether a header names a known piece with data, or a played one, as its predecessor. */
  #continues({ value }: SignedHeader): boolean {
    const { window, setup, nextSeq } = this.#state;
    const below = window.below(value.seq);
    if (!below || !equalBytes(setup.hash(below.header.bytes), value.previousHash)) return false;
    return below.seq < nextSeq || window.hasData(below);
  }

  #remember(header: SignedHeader): void {
    const versions = this.versionsOf(header.value.seq);
    if (versions.length >= MAX_VERSIONS) this.#others.delete(this.#key(versions[0]!.bytes));
    this.#others.set(this.#key(header.bytes), header);
    if (this.#others.size > MAX_OTHERS) this.#others.delete(this.#others.keys().next().value!);
  }

  #key(bytes: Uint8Array): string {
    return toHex(this.#state.setup.hash(bytes));
  }
}
