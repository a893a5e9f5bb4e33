import type { Conduct } from "./conduct.ts";
import { GONE_MS, PING_MS, SILENT_MS } from "./limits.ts";
import type { LiveWord } from "./messages.ts";
import type { LivePeer } from "./peer.ts";
import type { LiveState } from "./state.ts";

/** Asks neighbours whether they are there, and how far away; parts with those who are silent. */
export class Pulse {
  readonly #state: LiveState;
  readonly #conduct: Conduct;

  constructor(state: LiveState, conduct: Conduct) {
    this.#state = state;
    this.#conduct = conduct;
  }

  /** A PING is answered; a PONG tells the round trip, where it is the answer to our last PING. */
  hear(peer: LivePeer, message: LiveWord & { kind: "ping" | "pong" }): void {
    if (message.kind === "ping") this.#state.send(peer, { ...message, kind: "pong" });
    else if (message.token === peer.pingedAt) {
      peer.rttMs = 0.75 * peer.rttMs + 0.25 * (this.#state.now - peer.pingedAt);
    }
  }

  round(): void {
    const { now, peers } = this.#state;
    for (const peer of [...peers.values()]) {
      const quietMs = now - peer.heardAt;
      if (quietMs > (peer.window ? GONE_MS : SILENT_MS)) this.#conduct.close(peer, "silent");
      if (now - Math.max(peer.pingedAt, peer.openedAt) < PING_MS) continue;
      peer.pingedAt = now;
      this.#state.send(peer, { kind: "ping", token: now, clockMs: 0 });
    }
  }
}
