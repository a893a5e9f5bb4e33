import type { Conduct } from "./conduct.ts";
import {
  FORK_TOLERANCE_MS,
  HEADER_WAIT_MS,
  LATE_MS,
  MAX_AHEAD_PIECES,
  MAX_COPIES,
  MAX_QUARANTINE_BYTES,
  REPLAY_STRIKES,
} from "./limits.ts";
import type { SignedHeader, WholeChunk } from "./messages.ts";
import type { LivePeer } from "./peer.ts";
import type { LiveState } from "./state.ts";
import type { LivePiece } from "./window.ts";

/** The usual lateness of a stripe is limited to this share of the lag. */
const MAX_USUAL_SHARE = 0.4;

/** Minimum interval between two UNSUB to a peer that sends unwanted stripes: 16 stripes are ended before
 * its strikes reach the limit. */
const UNSUBSCRIBE_INTERVAL_MS = 100;

/** A new, verified chunk. */
export interface NewChunk {
  readonly piece: LivePiece;
  readonly stripe: number;
  readonly from: LivePeer | undefined;
  /** Pulled, backlog, or much later than its stripe usually is. */
  readonly isLate: boolean;
}

interface Waiting {
  readonly chunk: WholeChunk;
  readonly from: LivePeer;
}

/** Chunks of one piece that wait for its header. */
interface Missing {
  readonly chunks: Waiting[];
  /** Each sender is asked for the header once, because repeated copies would count as its fault. */
  readonly asked: Set<LivePeer>;
  askAt: number;
}

/** Verifies received chunks. A chunk whose header is missing waits in quarantine (live protocol: Trust). */
export class Chunks {
  readonly #state: LiveState;
  readonly #conduct: Conduct;
  readonly #added: (chunk: NewChunk) => void;
  readonly #wasPulled: (seq: number, stripe: number, from: LivePeer) => boolean;
  readonly #ofOther: (chunk: WholeChunk, from: LivePeer) => "adopted" | "rejected" | undefined;
  /** The usual lateness of each stripe in ms, as a moving average. */
  readonly usualMs: Float64Array;
  readonly #waiting = new Map<number, Missing>();
  #quarantinedBytes = 0;

  /** `added` is called for each new chunk. `wasPulled` returns whether the chunk was pulled, and ends that
   * pull. `ofOther`: see {@link Headers.chunkOfOther}. */
  constructor(
    state: LiveState,
    conduct: Conduct,
    added: (chunk: NewChunk) => void,
    wasPulled: (seq: number, stripe: number, from: LivePeer) => boolean,
    ofOther: (chunk: WholeChunk, from: LivePeer) => "adopted" | "rejected" | undefined,
  ) {
    this.#state = state;
    this.#conduct = conduct;
    this.#added = added;
    this.#wasPulled = wasPulled;
    this.#ofOther = ofOther;
    this.usualMs = new Float64Array(state.setup.layout.stripes);
  }

  /** Handles a CHUNK. Returns false if it belongs to another version of the stream. */
  take(chunk: WholeChunk, from: LivePeer): boolean {
    const { window, epoch } = this.#state;
    this.#state.receivedBytes += chunk.bytes.length;
    // The stream has moved; peers may not know yet.
    if (Number.isFinite(this.#state.revokedFromMs) && !window.piece(chunk.seq)) return false;
    if (chunk.epoch !== epoch || window.isTooOld(chunk.seq)) {
      // A parent may still follow a version of the stream that we have left.
      if ((from.parentOf & (1 << chunk.stripe)) === 0) this.#conduct.strike(from, "outdated chunk");
      return false;
    }
    if (this.#isReplay(chunk, from)) {
      const isForwarded = chunk.isLate && (from.parentOf & (1 << chunk.stripe)) !== 0;
      // A parent with a longer lag than ours may forward it late.
      this.#conduct.strike(from, "outdated chunk", isForwarded ? 1 : REPLAY_STRIKES);
      return false;
    }
    if (!window.piece(chunk.seq) && this.#isOfOther(chunk, from)) return false;
    const piece = window.piece(chunk.seq);
    if (piece) return this.#verify(piece, chunk, from);
    this.#wait(chunk, from);
    return true;
  }

  /** Whether a chunk was played long ago, and was not requested from this peer. */
  #isReplay({ seq, stripe }: WholeChunk, from: LivePeer): boolean {
    const { window, setup, nextSeq } = this.#state;
    const outdated = Math.min(window.head, nextSeq) - this.#state.piecesIn(2 * setup.lagMs);
    return nextSeq >= 0 && seq < outdated && !from.wasAsked(seq, stripe);
  }

  /** Whether a chunk belongs to another version, which is not followed. */
  #isOfOther(chunk: WholeChunk, from: LivePeer): boolean {
    if (this.#ofOther(chunk, from) !== "rejected") return false;
    this.#state.duplicateBytes += chunk.bytes.length;
    if ((from.parentOf & (1 << chunk.stripe)) === 0 && from.pulls === 0) this.#unasked(from, chunk.stripe);
    return true;
  }

  /** Bytes of the chunks in quarantine. */
  get quarantinedBytes(): number {
    return this.#quarantinedBytes;
  }

  /** Verifies the chunks that waited for this header. */
  headerAdded(header: SignedHeader): void {
    const { seq } = header.value;
    const waiting = this.#waiting.get(seq);
    const piece = this.#state.window.piece(seq);
    if (!waiting || !piece) return;
    this.#drop(seq);
    for (const { chunk, from } of waiting.chunks) {
      if (this.#isConnected(from)) this.#verify(piece, chunk, from);
    }
  }

  /** Returns the missing headers that are due to be requested, each with a sender of a waiting chunk. */
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
      const from = chunks.findLast(({ from }) => !asked.has(from) && this.#isConnected(from))?.from;
      if (!from) continue;
      asked.add(from);
      missing.askAt = now + HEADER_WAIT_MS + from.rttMs;
      due.push({ seq, from });
    }
    return due;
  }

  /** How much later than usual, in ms, a chunk of this piece would be if it arrived now. */
  overdueMs(piece: LivePiece, stripe: number): number {
    const { timeline, now } = this.#state;
    return timeline.latenessMs(piece.header.value.timestampMs, now) - this.usualMs[stripe]!;
  }

  /** Discards the chunks and measurements of the previous epoch. */
  reset(): void {
    this.#waiting.clear();
    this.#quarantinedBytes = 0;
    this.usualMs.fill(0);
  }

  #verify(piece: LivePiece, chunk: WholeChunk, from: LivePeer): boolean {
    const { setup, window, now } = this.#state;
    const { stripe, bytes, seq } = chunk;
    from.markSent(seq, stripe);
    const copies = from.countReceived(seq, stripe);
    const wasPulled = this.#wasPulled(seq, stripe, from);
    if (copies === 1) this.#state.line.received(bytes.length, now);
    if (window.has(seq, stripe)) {
      this.#state.duplicateBytes += bytes.length;
      if (copies === 1) from.deliveredLate();
      // The pull was too early: a chunk that always arrives late from the parent is not late.
      if (!chunk.isLate && !wasPulled && (from.parentOf & (1 << stripe)) !== 0) {
        const overdueMs = this.overdueMs(piece, stripe);
        if (copies === 1) this.#state.line.pushed(overdueMs, from, now);
        this.#learn(stripe, overdueMs - this.#state.lineDelayMs);
      }
      // A parent may send chunks that arrived from elsewhere, but each one once, and no old ones.
      const isParent =
        (from.parentOf & (1 << stripe)) !== 0 && seq > window.head - this.#state.piecesIn(2 * setup.lagMs);
      if ((!isParent || copies > MAX_COPIES) && !wasPulled) this.#unasked(from, stripe);
      // A peer is on probation while another parent sends the same chunks.
      else if ((isParent || wasPulled) && !setup.isValidChunk(piece.header, stripe, bytes))
        this.#punish(from);
      return true;
    }
    if (!setup.isValidChunk(piece.header, stripe, bytes)) {
      if (this.#isOfOther(chunk, from)) return false;
      const adopted = window.piece(seq);
      if (adopted && adopted !== piece) return this.#verify(adopted, chunk, from);
      this.#punish(from);
      return true;
    }
    const overdueMs = this.overdueMs(piece, stripe);
    const isLate = chunk.isLate || wasPulled || overdueMs > LATE_MS;
    if (isLate) from.deliveredLate();
    else from.delivered(now);
    if (!wasPulled && !chunk.isLate) {
      this.#leaveStranger(from, stripe);
      this.#state.line.pushed(overdueMs, from, now);
      this.#learn(stripe, overdueMs - this.#state.lineDelayMs);
    }
    window.addChunk(piece, stripe, bytes, now);
    this.#state.dataAt = now;
    this.#state.dataTimestampMs = Math.max(this.#state.dataTimestampMs, piece.header.value.timestampMs);
    this.#added({ piece, stripe, from, isLate });
    return true;
  }

  /** A chunk does not match its header. During a fork, the header of the other version may arrive later. */
  #punish(from: LivePeer): void {
    if (this.#state.now - this.#state.forkedAt < FORK_TOLERANCE_MS)
      this.#conduct.strike(from, "chunk of another version of the stream");
    else this.#conduct.ban(from, "chunk hash mismatch");
  }

  /** Moves the usual lateness of a stripe towards a measurement, within limits so that pulls do not start
   * too late. */
  #learn(stripe: number, overdueMs: number): void {
    const usualMs =
      this.usualMs[stripe]! + (overdueMs > LATE_MS ? Math.min(overdueMs, 2 * LATE_MS) / 32 : overdueMs / 16);
    this.usualMs[stripe] = Math.min(usualMs, MAX_USUAL_SHARE * this.#state.setup.lagMs);
  }

  /** Tells a peer by UNSUB that a stripe that it pushes is not wanted: messages have crossed. Otherwise it sends the stripe as long as
   * its upload permits, and each chunk arrives twice. */
  #leaveStranger(from: LivePeer, stripe: number): void {
    const { now } = this.#state;
    if ((from.parentOf & (1 << stripe)) !== 0 || now < from.unsubscribedAt + UNSUBSCRIBE_INTERVAL_MS) return;
    from.unsubscribedAt = now;
    this.#state.send(from, { kind: "unsubscribe", stripes: 1 << stripe, reason: "moved" });
  }

  /** Counts a strike for a chunk that was not requested. A peer that misunderstood stops after the UNSUB; a flood continues. */
  #unasked(from: LivePeer, stripe: number): void {
    this.#leaveStranger(from, stripe);
    this.#conduct.strike(from, "unrequested chunk");
  }

  #wait(chunk: WholeChunk, from: LivePeer): void {
    const { window, now, headAt } = this.#state;
    // After a pause of the source, its sequence numbers are ahead by the length of the pause.
    const ahead = MAX_AHEAD_PIECES + this.#state.piecesIn(now - headAt);
    if (window.head < 0 || chunk.seq > window.head + ahead || window.isGap(chunk.seq)) {
      this.#conduct.strike(from, "chunk of an unknown piece");
      return;
    }
    const missing = this.#waiting.get(chunk.seq) ?? {
      chunks: [],
      asked: new Set(),
      askAt: now + HEADER_WAIT_MS,
    };
    if (missing.chunks.some((other) => other.chunk.stripe === chunk.stripe && other.from === from)) return;
    // One peer may use at most a quarter of the quarantine.
    if (this.#waitingOf(from) + chunk.bytes.length > MAX_QUARANTINE_BYTES / 4) {
      this.#conduct.strike(from, "too many chunks without a header");
      return;
    }
    missing.chunks.push({ chunk, from });
    this.#quarantinedBytes += chunk.bytes.length;
    this.#waiting.set(chunk.seq, missing);
    while (this.#quarantinedBytes > MAX_QUARANTINE_BYTES) this.#drop(this.#waiting.keys().next().value!);
  }

  #waitingOf(peer: LivePeer): number {
    let bytes = 0;
    for (const { chunks } of this.#waiting.values())
      for (const { chunk, from } of chunks) if (from === peer) bytes += chunk.bytes.length;
    return bytes;
  }

  #isConnected(peer: LivePeer): boolean {
    return this.#state.peers.get(peer.connection) === peer;
  }

  #drop(seq: number): void {
    for (const { chunk } of this.#waiting.get(seq)?.chunks ?? [])
      this.#quarantinedBytes -= chunk.bytes.length;
    this.#waiting.delete(seq);
  }
}
