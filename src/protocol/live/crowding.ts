import { addressScope, type PeerAddress } from "../../base/address.ts";
import { networkOf } from "../../base/network.ts";
import {
  IDLE_PEER_MS,
  MAX_PEERS_PER_LOCAL_ADDRESS,
  MAX_PEERS_PER_LOCAL_NETWORK,
  MAX_PEERS_PER_NETWORK,
  PROOF_CHUNKS,
} from "./limits.ts";
import type { LivePeer } from "./peer.ts";
import type { LiveState } from "./state.ts";

/** Limits the connections by address and network, and decides which idle ones give way to newcomers. */
export class Crowding {
  readonly #state: LiveState;

  constructor(state: LiveState) {
    this.#state = state;
  }

  /** Limits the connections to one address and one network, so that their owner cannot hold all of them. */
  hasRoom(address: PeerAddress): boolean {
    return this.#in(address) === undefined;
  }

  /** The peers of the address, the network, or the whole swarm that leave no room for one more at this address;
   * undefined if there is room. */
  at(address: PeerAddress, maxPeers: number): readonly LivePeer[] | undefined {
    const { peers } = this.#state;
    return this.#in(address) ?? (peers.size < maxPeers ? undefined : [...peers.values()]);
  }

  #in({ host }: PeerAddress): readonly LivePeer[] | undefined {
    const network = networkOf(host);
    const inNetwork = [...this.#state.peers.values()].filter((peer) => peer.network === network);
    if (addressScope(host) === "global")
      return inNetwork.length < MAX_PEERS_PER_NETWORK ? undefined : inNetwork;
    const atAddress = inNetwork.filter((peer) => peer.address.host === host);
    if (atAddress.length >= MAX_PEERS_PER_LOCAL_ADDRESS) return atAddress;
    return inNetwork.length < MAX_PEERS_PER_LOCAL_NETWORK ? undefined : inNetwork;
  }

  /** Whether a peer has neither sent nor received anything for a while. */
  isIdle({ parentOf, childOf, openedAt, isSourceOrRelay }: LivePeer): boolean {
    return parentOf === 0 && childOf === 0 && !isSourceOrRelay && this.#state.now - openedAt >= IDLE_PEER_MS;
  }

  /** Of idle peers that connected to us and never delivered, the oldest of the address that has the most of them. */
  mostDispensable(among: readonly LivePeer[]): LivePeer | undefined {
    const idle = among.filter(
      (peer) => this.isIdle(peer) && peer.connection % 2 === 1 && peer.usefulChunks < PROOF_CHUNKS,
    );
    const byHost = new Map<string, number>();
    for (const { address } of idle) byHost.set(address.host, (byHost.get(address.host) ?? 0) + 1);
    const most = Math.max(...byHost.values());
    return idle.find(({ address }) => byHost.get(address.host) === most);
  }
}
