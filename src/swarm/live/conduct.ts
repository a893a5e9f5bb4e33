import { MAX_STRIKES } from "./limits.ts";
import type { LivePeer } from "./peer.ts";
import type { LiveState } from "./state.ts";

/** Who breaks the rules: a proof bans, a nuisance counts. */
export class Conduct {
  readonly #state: LiveState;
  readonly #remove: (peer: LivePeer) => void;
  readonly #forbid: (peer: LivePeer) => void;

  /** `remove` takes a peer out of everything; `forbid` makes its address none to call or to be called by. */
  constructor(state: LiveState, remove: (peer: LivePeer) => void, forbid: (peer: LivePeer) => void) {
    this.#state = state;
    this.#remove = remove;
    this.#forbid = forbid;
  }

  /** Proof of a lie: its bytes do not fit what the source signed. */
  ban(peer: LivePeer, reason: string): void {
    this.#forbid(peer);
    this.#state.emit({ kind: "banned", address: peer.address, reason });
    this.close(peer, reason);
  }

  /** Something of no use; too much of it costs the connection, and is a reason for a ban unless clocks may be at fault. */
  strike(peer: LivePeer, reason: string): void {
    peer.forgive(this.#state.now);
    if (++peer.strikes <= MAX_STRIKES) return;
    if (peer.isAhead) this.close(peer, reason);
    else this.ban(peer, reason);
  }

  /** Ends the connection. */
  close(peer: LivePeer, reason: string): void {
    if (this.#state.peers.get(peer.connection) !== peer) return;
    this.#state.emit({ kind: "close", connection: peer.connection, reason });
    this.#remove(peer);
  }
}
