import type { PeerAddress } from "../../base/address.ts";
import { MAX_CANDIDATES } from "../../wire/live/limits.ts";
import type {
  ChunkName,
  HeaderRequestMessage,
  RefusedChunkReason,
  RequestMessage,
} from "../../wire/live/request.ts";
import type { Children } from "./children.ts";
import type { Conduct } from "./conduct.ts";
import { PRIORITY } from "./contract.ts";
import type { Headers } from "./headers.ts";
import {
  MAX_HEADERS_ANSWERED,
  MAX_HEADERS_SEARCHED,
  PROOF_CHUNKS,
  PROVEN_CHILD_MS,
  PROVEN_RESERVE_SECONDS,
} from "./limits.ts";
import type { LivePeer } from "./peer.ts";
import type { SpareUpload } from "./spare-upload.ts";
import type { LiveState } from "./state.ts";

/** The source leaves a repair to its children if this number of them have the chunk. */
const MIN_CONFIRMED_CHILDREN = 2;

/** In a NAK, stands for the header of the piece. */
const HEADER_STRIPE = 255;

/** If less than this share of the lag remains, the source answers in any case. */
const LAST_RESORT_SHARE = 0.5;

/** Answers the pulls of other peers from the spare upload, or sends NAK at once. */
export class Answers {
  readonly #state: LiveState;
  readonly #headers: Headers;
  readonly #children: Children;
  readonly #spareUpload: SpareUpload;
  readonly #conduct: Conduct;

  constructor(
    state: LiveState,
    headers: Headers,
    children: Children,
    spareUpload: SpareUpload,
    conduct: Conduct,
  ) {
    this.#state = state;
    this.#headers = headers;
    this.#children = children;
    this.#spareUpload = spareUpload;
    this.#conduct = conduct;
  }

  /** REQ: sends each chunk at repair priority, or names it in a NAK. */
  request(peer: LivePeer, { epoch, chunks }: RequestMessage): void {
    if (!peer.requestAllowance.take(chunks.length, this.#state.now)) {
      this.#conduct.strike(peer, "too many requests");
      return;
    }
    if (epoch !== this.#state.epoch) {
      const lacking = chunks.map(({ seq, stripe }) => ({ seq, stripe, reason: "not-here" as const }));
      this.#state.send(peer, { kind: "lacking", epoch, chunks: lacking, holders: [] });
      this.#conduct.strike(peer, "request for another epoch");
      return;
    }
    const lacking: (ChunkName & { reason: RefusedChunkReason })[] = [];
    let holders: PeerAddress[] | undefined;
    for (const { seq, stripe, withinMs } of chunks) {
      const reason = this.#answer(peer, seq, stripe, withinMs);
      if (reason === undefined) continue;
      lacking.push({ seq, stripe, reason });
      holders ??= this.#holders(seq, stripe, peer);
    }
    if (holders) this.#state.send(peer, { kind: "lacking", epoch, chunks: lacking, holders });
  }

  /** HREQ: sends the known headers, within the allowance of the peer. If it sends none, refuses with NAK. */
  headers(peer: LivePeer, request: HeaderRequestMessage): void {
    const { epoch, firstSeq } = request;
    const isAllowed = peer.headerAllowance.take(1, this.#state.now);
    if (isAllowed && epoch === this.#state.epoch && this.#sendHeaders(peer, request) > 0) return;
    // A peer that knows the reason asks another one at once, or waits.
    const reason = peer.headerAllowance.waitMs(this.#state.now) > 0 ? "busy" : "not-here";
    const chunks = [{ seq: firstSeq, stripe: HEADER_STRIPE, reason } as const];
    this.#state.send(peer, { kind: "lacking", epoch, chunks, holders: [] });
    if (!isAllowed) this.#conduct.strike(peer, "too many header requests");
  }

  /** Returns the number of headers sent. */
  #sendHeaders(peer: LivePeer, request: HeaderRequestMessage): number {
    const { window, now } = this.#state;
    let looked = 0;
    let sent = 0;
    for (
      let seq = Math.max(request.firstSeq, window.oldest);
      sent < Math.min(request.count, MAX_HEADERS_ANSWERED) &&
      looked < MAX_HEADERS_SEARCHED &&
      seq <= window.head;
      seq += Math.max(1, request.step), looked++
    ) {
      const piece = window.piece(seq);
      if (!piece) continue;
      if (request.onlyRandomAccess && piece.header.value.randomAccessOffset === undefined) continue;
      if (!peer.headerAllowance.take(1, now)) break;
      sent++;
      this.#spareUpload.spend(piece.header.bytes.length, now);
      this.#headers.pass(piece.header, peer, true);
    }
    return sent;
  }

  #answer(peer: LivePeer, seq: number, stripe: number, withinMs: number): RefusedChunkReason | undefined {
    const { window, epoch, now } = this.#state;
    const piece = window.piece(seq);
    if (!piece || !window.has(seq, stripe)) return "not-here";
    // Children may claim a chunk and not forward it, so the source answers when time runs out.
    const hasTime = withinMs > LAST_RESORT_SHARE * this.#state.setup.lagMs;
    // The parents that a displaced child finds may be strangers that deliver nothing.
    const isDisplaced = now - peer.displacedAt < PROVEN_CHILD_MS;
    const isConfirmed = this.#state.isSource && hasTime && !isDisplaced && this.#isConfirmed(seq, stripe);
    // The others did not answer a peer that asks again.
    if (isConfirmed && peer.markDeferred(seq, stripe)) return "ask-others";
    if (!this.#state.receipts.permits(peer, now) || !this.#state.share.permits(peer, now)) return "busy";
    const bytes = piece.chunks[stripe]!;
    const reserveSeconds = this.#isProven(peer) ? 0 : PROVEN_RESERVE_SECONDS;
    const waitMs = this.#spareUpload.waitMs(bytes.length, now, reserveSeconds);
    if (waitMs + peer.rttMs / 2 > withinMs) return "too-late";
    if (waitMs > 400) return "busy";
    this.#spareUpload.spend(bytes.length, now);
    this.#state.chunkSent(peer, piece, stripe);
    peer.markSent(seq, stripe);
    this.#headers.pass(piece.header, peer, false);
    this.#state.send(
      peer,
      { kind: "chunk", epoch, seq, stripe, isLate: true, bytes },
      PRIORITY.repair,
      withinMs,
    );
    return undefined;
  }

  /** Whether the peer has been our child for a while, or has sent us useful chunks: it is served before strangers. */
  #isProven(peer: LivePeer): boolean {
    const isOldChild = peer.childOf !== 0 && this.#state.now - peer.openedAt > PROVEN_CHILD_MS;
    return isOldChild || peer.usefulChunks >= PROOF_CHUNKS;
  }

  /** Whether enough children that forward the stripe claim to have the chunk. */
  #isConfirmed(seq: number, stripe: number): boolean {
    const { now } = this.#state;
    const holders = this.#children
      .of(stripe)
      .filter(({ peer }) => peer.unproductiveUntil <= now && peer.has(seq, stripe));
    return holders.length >= MIN_CONFIRMED_CHILDREN;
  }

  #holders(seq: number, stripe: number, not: LivePeer): PeerAddress[] {
    return [...this.#state.peers.values()]
      .filter((peer) => peer !== not && peer.isReachable && peer.has(seq, stripe))
      .slice(0, MAX_CANDIDATES)
      .map(({ address }) => address);
  }
}
