import type { ChunkName, LackingMessage } from "../../wire/live/request.ts";
import type { Conduct } from "./conduct.ts";
import { PRIORITY } from "./contract.ts";
import { BAN_MS, MAX_UNANSWERED_PROBES, PROBE_AFTER_MS, PROBE_MS, PROBE_RETRY_MS } from "./limits.ts";
import type { LivePeer } from "./peer.ts";
import type { LiveState } from "./state.ts";

/** What is known about a peer that has not sent any chunk. */
interface Probe {
  /** The chunk that it was asked for last; undefined if it has answered. */
  asked: ChunkName | undefined;
  unanswered: number;
  nextAt: number;
}

/**
 * Asks each viewer that claims chunks and has never sent one for a chunk that is held here already, so the answer can be checked. A viewer
 * that does not answer several times is banned: it claims chunks and sends none. A wrong answer bans it as any wrong chunk does.
 */
export class Probes {
  readonly #state: LiveState;
  readonly #conduct: Conduct;
  readonly #probes = new WeakMap<LivePeer, Probe>();

  constructor(state: LiveState, conduct: Conduct) {
    this.#state = state;
    this.#conduct = conduct;
  }

  round(): void {
    const { peers, now } = this.#state;
    for (const peer of [...peers.values()]) {
      const { about, openedAt } = peer;
      // The source is not charged for this, and a peer that offers no upload need not answer.
      if (about.role !== "viewer" || about.uploadBytesPerSecond === 0 || !peer.hasSentHello) continue;
      if (peer.hasSentChunk || peer.isSilent(now) || now - openedAt < PROBE_AFTER_MS) continue;
      const probe = this.#probes.get(peer) ?? { asked: undefined, unanswered: 0, nextAt: 0 };
      this.#probes.set(peer, probe);
      if (now >= probe.nextAt) this.#next(peer, probe);
    }
  }

  /** Returns whether a chunk answers a probe: the first one that the peer sends on request, however late. */
  answered(seq: number, stripe: number, from: LivePeer): boolean {
    return this.#probes.has(from) && !from.hasSentChunk && from.wasAsked(seq, stripe);
  }

  /** A NAK arrived: the peer has no upload to spare, so it is asked again later. */
  refused(from: LivePeer, { chunks }: LackingMessage): void {
    const probe = this.#probes.get(from);
    const asked = probe?.asked;
    if (!asked || !chunks.some(({ seq, stripe }) => seq === asked.seq && stripe === asked.stripe)) return;
    this.#probes.set(from, { asked: undefined, unanswered: 0, nextAt: this.#state.now + PROBE_RETRY_MS });
  }

  #next(peer: LivePeer, probe: Probe): void {
    const { now, epoch } = this.#state;
    if (probe.asked && ++probe.unanswered >= MAX_UNANSWERED_PROBES) {
      this.#conduct.ban(peer, "claims chunks and sends none", BAN_MS);
      return;
    }
    probe.nextAt = now + PROBE_MS;
    probe.asked = this.#claimed(peer);
    if (!probe.asked) return;
    peer.markAsked(probe.asked.seq, probe.asked.stripe);
    // On a full line the answer waits for a while.
    const chunks = [{ ...probe.asked, withinMs: MAX_UNANSWERED_PROBES * PROBE_MS }];
    this.#state.send(peer, { kind: "request", epoch, chunks }, PRIORITY.control);
  }

  /** Returns the newest chunk that is held here and that the peer claims to have, of its home stripe if possible. */
  #claimed(peer: LivePeer): ChunkName | undefined {
    const { window } = this.#state;
    const first = peer.about.homeStripe;
    for (let seq = window.head; seq >= Math.max(window.oldest, window.head - 31); seq--) {
      const piece = window.piece(seq);
      if (!piece) continue;
      for (let i = 0; i < window.stripes; i++) {
        const stripe = (first + i) % window.stripes;
        if (piece.chunks[stripe]!.length > 0 && peer.has(seq, stripe)) return { seq, stripe };
      }
    }
    return undefined;
  }
}
