import type { PeerAddress } from "../../base/address.ts";
import type { ChunkName, HeaderRequestMessage, LackReason, RequestMessage } from "../../wire/live-request.ts";
import type { Children } from "./children.ts";
import type { Conduct } from "./conduct.ts";
import { PRIORITY } from "./contract.ts";
import type { Headers } from "./headers.ts";
import { MAX_HEADERS_ANSWERED, MAX_NAMED_CANDIDATES } from "./limits.ts";
import type { LivePeer } from "./peer.ts";
import type { Spare } from "./spare.ts";
import type { LiveState } from "./state.ts";

/** So many children must have shown that they hold a chunk before the source leaves repairs to them. */
const CONFIRMED = 2;

/** The part of the lag that is left when the source answers in any case. */
const LAST_RESORT = 0.5;

/** Answers what others pull from us, out of the spare upload, and says so at once where that does not do. */
export class Answers {
  readonly #state: LiveState;
  readonly #headers: Headers;
  readonly #children: Children;
  readonly #spare: Spare;
  readonly #conduct: Conduct;

  constructor(state: LiveState, headers: Headers, children: Children, spare: Spare, conduct: Conduct) {
    this.#state = state;
    this.#headers = headers;
    this.#children = children;
    this.#spare = spare;
    this.#conduct = conduct;
  }

  /** REQ: sends each chunk at repair priority, or names it in a NAK. */
  request(peer: LivePeer, { epoch, chunks }: RequestMessage): void {
    if (epoch !== this.#state.epoch) {
      this.#conduct.strike(peer, "requests of another epoch");
      return;
    }
    const lacking: (ChunkName & { reason: LackReason })[] = [];
    let holders: PeerAddress[] = [];
    for (const { seq, stripe, withinMs } of chunks) {
      const reason = this.#answer(peer, seq, stripe, withinMs);
      if (reason === undefined) continue;
      lacking.push({ seq, stripe, reason });
      if (holders.length === 0) holders = this.#holders(seq, stripe, peer);
    }
    if (lacking.length > 0) this.#state.send(peer, { kind: "lacking", epoch, chunks: lacking, holders });
  }

  /** HREQ: the headers that are here. */
  headers(peer: LivePeer, request: HeaderRequestMessage): void {
    const { window, epoch, now } = this.#state;
    if (request.epoch !== epoch) return;
    let left = Math.min(request.count, MAX_HEADERS_ANSWERED);
    for (
      let seq = Math.max(request.firstSeq, window.oldest);
      left > 0 && seq <= window.head;
      seq += Math.max(1, request.step)
    ) {
      const piece = window.piece(seq);
      if (!piece) continue;
      if (request.onlyRandomAccess && piece.header.value.randomAccessOffset === undefined) continue;
      left--;
      this.#spare.spend(piece.header.bytes.length, now);
      this.#headers.pass(piece.header, peer, true);
    }
  }

  #answer(peer: LivePeer, seq: number, stripe: number, withinMs: number): LackReason | undefined {
    const { window, epoch, now } = this.#state;
    const piece = window.piece(seq);
    if (!piece || !window.has(seq, stripe)) return "not-here";
    // Children that have it may keep it to themselves: the source is the last resort of those who run out of time.
    const hasTime = withinMs > LAST_RESORT * this.#state.setup.lagMs;
    if (this.#state.isSource && hasTime && this.#isConfirmed(seq, stripe)) return "ask-others";
    const bytes = piece.chunks[stripe]!;
    const waitMs = this.#spare.waitMs(bytes.length, now);
    if (waitMs + peer.rttMs / 2 > withinMs) return "too-late";
    if (waitMs > 400) return "busy";
    this.#spare.spend(bytes.length, now);
    peer.give(seq, stripe);
    this.#headers.pass(piece.header, peer, false);
    this.#state.send(
      peer,
      { kind: "chunk", epoch, seq, stripe, isLate: true, bytes },
      PRIORITY.repair,
      withinMs,
    );
    return undefined;
  }

  #isConfirmed(seq: number, stripe: number): boolean {
    return this.#children.of(stripe).filter(({ peer }) => peer.has(seq, stripe)).length >= CONFIRMED;
  }

  #holders(seq: number, stripe: number, not: LivePeer): PeerAddress[] {
    return [...this.#state.peers.values()]
      .filter((peer) => peer !== not && peer.isReachable && peer.has(seq, stripe))
      .slice(0, MAX_NAMED_CANDIDATES)
      .map(({ address }) => address);
  }
}
