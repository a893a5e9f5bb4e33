import type { Conduct } from "./conduct.ts";
import {
  FORKED_MS,
  HEADER_WAIT_MS,
  LATE_MS,
  MAX_AHEAD_PIECES,
  MAX_QUARANTINE_BYTES,
  MAX_TOLD,
} from "./limits.ts";
import type { SignedHeader, WholeChunk } from "./messages.ts";
import type { LivePeer } from "./peer.ts";
import type { LiveState } from "./state.ts";
import type { LivePiece } from "./window.ts";

/** The part of the lag that chunks of a stripe may take on their way as a rule. */
const MOST_USUAL = 0.4;

/** Who sends what we do not want is told so this often: once for each stripe, of sixteen, before it has sent too much. */
const PARTED_MS = 100;

/** A verified chunk that is new to us. */
export interface NewChunk {
  readonly piece: LivePiece;
  readonly stripe: number;
  readonly from: LivePeer | undefined;
  /** Asked for, out of the backlog, or much later than its stripe usually is. */
  readonly isLate: boolean;
}

interface Waiting {
  readonly chunk: WholeChunk;
  readonly from: LivePeer;
}

/** Chunks of one piece that wait for its header. */
interface Missing {
  readonly chunks: Waiting[];
  /** Each is asked for it once: the same header again and again would be its fault. */
  readonly asked: Set<LivePeer>;
  askAt: number;
}

/** Chunks as they come: verified against their header, which some have to wait for. */
export class Chunks {
  readonly #state: LiveState;
  readonly #conduct: Conduct;
  readonly #added: (chunk: NewChunk) => void;
  readonly #wasAsked: (seq: number, stripe: number, from: LivePeer) => boolean;
  /** How late each stripe usually is, in ms (a moving average). */
  readonly usualMs: Float64Array;
  readonly #waiting = new Map<number, Missing>();
  #waitingBytes = 0;

  /** `wasAsked` says whether we pulled a chunk, and settles that pull. */
  constructor(
    state: LiveState,
    conduct: Conduct,
    added: (chunk: NewChunk) => void,
    wasAsked: (seq: number, stripe: number, from: LivePeer) => boolean,
  ) {
    this.#state = state;
    this.#conduct = conduct;
    this.#added = added;
    this.#wasAsked = wasAsked;
    this.usualMs = new Float64Array(state.setup.layout.stripes);
  }

  /** Takes a chunk from a peer. */
  take(chunk: WholeChunk, from: LivePeer): void {
    const { window, epoch } = this.#state;
    this.#state.receivedBytes += chunk.bytes.length;
    if (chunk.epoch !== epoch || window.isTooOld(chunk.seq)) {
      this.#conduct.strike(from, "chunks of long ago");
      return;
    }
    const piece = window.piece(chunk.seq);
    if (piece) this.#verify(piece, chunk, from);
    else this.#wait(chunk, from);
  }

  /** Bytes of chunks that wait for their header. */
  get waitingBytes(): number {
    return this.#waitingBytes;
  }

  /** A header came: what waited for it can be verified. */
  headerAdded(header: SignedHeader): void {
    const { seq } = header.value;
    const waiting = this.#waiting.get(seq);
    const piece = this.#state.window.piece(seq);
    if (!waiting || !piece) return;
    this.#drop(seq);
    for (const { chunk, from } of waiting.chunks) {
      if (this.#isThere(from)) this.#verify(piece, chunk, from);
    }
  }

  /** Headers that chunks have waited for long enough, with one who must have each, and is asked now. */
  headersMissing(): { readonly seq: number; readonly from: LivePeer }[] {
    const { window, now } = this.#state;
    const due = [];
    for (const [seq, missing] of this.#waiting) {
      if (window.isTooOld(seq)) {
        this.#drop(seq);
        continue;
      }
      if (now < missing.askAt) continue;
      const { chunks, asked } = missing;
      const from = chunks.findLast(({ from }) => !asked.has(from) && this.#isThere(from))?.from;
      if (!from) continue;
      asked.add(from);
      missing.askAt = now + HEADER_WAIT_MS + from.rttMs;
      due.push({ seq, from });
    }
    return due;
  }

  /** How much later than its stripe usually is a chunk of this piece would be now. */
  overdueMs(piece: LivePiece, stripe: number): number {
    const { timeline, now } = this.#state;
    return timeline.latenessMs(piece.header.value.timestampMs, now) - this.usualMs[stripe]!;
  }

  /** A new epoch: nothing that waits fits it. */
  reset(): void {
    this.#waiting.clear();
    this.#waitingBytes = 0;
    this.usualMs.fill(0);
  }

  #verify(piece: LivePiece, chunk: WholeChunk, from: LivePeer): void {
    const { setup, window, now } = this.#state;
    const { stripe, bytes, seq } = chunk;
    from.give(seq, stripe);
    const told = from.tell(seq, stripe);
    const wasAsked = this.#wasAsked(seq, stripe, from);
    if (window.has(seq, stripe)) {
      this.#state.duplicateBytes += bytes.length;
      // We were too quick to pull it: what always comes late by this way is not late.
      if (!chunk.isLate && !wasAsked && (from.parentOf & (1 << stripe)) !== 0)
        this.#learn(stripe, this.overdueMs(piece, stripe));
      // A parent sends what we have from elsewhere by then, but each chunk once, and none of long ago.
      const isParent =
        (from.parentOf & (1 << stripe)) !== 0 && seq > window.head - this.#state.piecesIn(2 * setup.lagMs);
      if ((!isParent || told > MAX_TOLD) && !wasAsked) this.#unasked(from, stripe);
      return;
    }
    if (!setup.fits(piece.header, stripe, bytes)) {
      // While two programs sign, it may well fit the other one's header.
      if (now - this.#state.forkedAt < FORKED_MS) this.#conduct.strike(from, "chunks of another version");
      else this.#conduct.ban(from, "a chunk that does not fit its hash");
      return;
    }
    const overdueMs = this.overdueMs(piece, stripe);
    const isLate = chunk.isLate || wasAsked || overdueMs > LATE_MS;
    if (!isLate) from.usefulChunks++;
    if (!wasAsked && !chunk.isLate) this.#learn(stripe, overdueMs);
    window.addChunk(piece, stripe, bytes, now);
    this.#added({ piece, stripe, from, isLate });
  }

  /** Moves what is usual for a stripe towards what has just been; never so far that pulling would begin too late. */
  #learn(stripe: number, overdueMs: number): void {
    const usualMs =
      this.usualMs[stripe]! + (overdueMs > LATE_MS ? Math.min(overdueMs, 2 * LATE_MS) / 32 : overdueMs / 16);
    this.usualMs[stripe] = Math.min(usualMs, MOST_USUAL * this.#state.setup.lagMs);
  }

  /** It takes us for its child, or it floods us: once told that we are not, only the latter goes on. */
  #unasked(from: LivePeer, stripe: number): void {
    const { now } = this.#state;
    if ((from.parentOf & (1 << stripe)) === 0 && now >= from.partedAt + PARTED_MS) {
      from.partedAt = now;
      this.#state.send(from, { kind: "unsubscribe", stripes: 1 << stripe, reason: "moved" });
    }
    this.#conduct.strike(from, "chunks not asked for");
  }

  #wait(chunk: WholeChunk, from: LivePeer): void {
    const { window, now, headAt } = this.#state;
    // After a pause of the source its numbers are as far ahead as the pause was long.
    const ahead = MAX_AHEAD_PIECES + this.#state.piecesIn(now - headAt);
    if (window.head < 0 || chunk.seq > window.head + ahead || window.isGap(chunk.seq)) {
      this.#conduct.strike(from, "chunks of pieces that nobody signed");
      return;
    }
    const missing = this.#waiting.get(chunk.seq) ?? {
      chunks: [],
      asked: new Set(),
      askAt: now + HEADER_WAIT_MS,
    };
    if (missing.chunks.some((other) => other.chunk.stripe === chunk.stripe && other.from === from)) return;
    // One peer cannot take the room of all others.
    if (this.#waitingOf(from) + chunk.bytes.length > MAX_QUARANTINE_BYTES / 4) {
      this.#conduct.strike(from, "too many chunks without their header");
      return;
    }
    missing.chunks.push({ chunk, from });
    this.#waitingBytes += chunk.bytes.length;
    this.#waiting.set(chunk.seq, missing);
    while (this.#waitingBytes > MAX_QUARANTINE_BYTES) this.#drop(this.#waiting.keys().next().value!);
  }

  #waitingOf(peer: LivePeer): number {
    let bytes = 0;
    for (const { chunks } of this.#waiting.values())
      for (const { chunk, from } of chunks) if (from === peer) bytes += chunk.bytes.length;
    return bytes;
  }

  #isThere(peer: LivePeer): boolean {
    return this.#state.peers.get(peer.connection) === peer;
  }

  #drop(seq: number): void {
    for (const { chunk } of this.#waiting.get(seq)?.chunks ?? []) this.#waitingBytes -= chunk.bytes.length;
    this.#waiting.delete(seq);
  }
}
