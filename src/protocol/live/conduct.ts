import { MAX_CANDIDATES } from "../../wire/live/limits.ts";
import { BAN_MS, DELIVERING_MS, MAX_BAN_MS, MAX_STRIKES, PROOF_CHUNKS } from "./limits.ts";
import { candidateOf, type LivePeer } from "./peer.ts";
import type { LiveState } from "./state.ts";

/** Reactions to faults of peers: proof of a fault bans, a useless message counts as a strike. */
export class Conduct {
  readonly #state: LiveState;
  readonly #remove: (peer: LivePeer) => void;
  readonly #forbid: (peer: LivePeer, forMs: number) => number;

  /** `remove` removes a peer from all parts of the swarm; `forbid` bans its address for a time or, if it was banned
   * before, longer, and returns the time. */
  constructor(
    state: LiveState,
    remove: (peer: LivePeer) => void,
    forbid: (peer: LivePeer, forMs: number) => number,
  ) {
    this.#state = state;
    this.#remove = remove;
    this.#forbid = forbid;
  }

  /** Bans a peer after proof: it sent data that does not match what the source signed. */
  ban(peer: LivePeer, reason: string, forMs = MAX_BAN_MS): void {
    const bannedMs = this.#forbid(peer, forMs);
    this.#state.emit({ kind: "banned", address: peer.address, reason, forMs: bannedMs });
    this.close(peer, reason);
  }

  /** Counts a useless message, which has no effect, as `weight` strikes. Above the limit the peer is banned for a short time, or only
   * disconnected if a wrong clock may be the reason. A peer without which playback would stop is kept. */
  strike(peer: LivePeer, reason: string, weight = 1): void {
    peer.forgive(this.#state.now);
    peer.strikes += weight;
    if (peer.strikes <= MAX_STRIKES || this.#isNeeded(peer)) return;
    if (peer.hasFutureHeader) this.close(peer, reason);
    else this.ban(peer, reason, BAN_MS);
  }

  /** Whether the peer is the source, and has delivered, or is the last peer that delivers. */
  #isNeeded(peer: LivePeer): boolean {
    const { now, peers } = this.#state;
    const delivers = ({ usefulChunks, usefulAt }: LivePeer) =>
      usefulChunks >= PROOF_CHUNKS && now - usefulAt < DELIVERING_MS;
    if (!delivers(peer)) return false;
    return (
      peer.about.role === "source" || ![...peers.values()].some((other) => other !== peer && delivers(other))
    );
  }

  /** Closes the connection; does nothing if it is closed already. */
  close(peer: LivePeer, reason: string): void {
    if (this.#state.peers.get(peer.connection) !== peer) return;
    this.#state.emit({ kind: "close", connection: peer.connection, reason });
    this.#remove(peer);
  }

  /** Sends BYE to all peers, naming our reachable parents as candidates, and closes the connections. */
  leave(): void {
    const candidates = [...this.#state.peers.values()]
      .filter((peer) => peer.parentOf !== 0 && peer.isReachable)
      .slice(0, MAX_CANDIDATES)
      .map(candidateOf);
    for (const peer of [...this.#state.peers.values()]) {
      this.#state.send(peer, { kind: "bye", reason: "leaving", candidates });
      this.close(peer, "stopped");
    }
  }
}
