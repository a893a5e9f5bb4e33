import { addressText, type PeerAddress } from "../../base/address.ts";
import { networkOf } from "../candidates.ts";
import {
  CANDIDATE_REST_MS,
  FIND_INTERVAL_MS,
  MAX_LIVE_CANDIDATES,
  MAX_LIVE_HALF_OPEN,
  MAX_LIVE_PEERS,
  MAX_PEERS_PER_NETWORK,
  MAX_SOURCE_PEERS,
  WANTED_PEERS,
} from "./limits.ts";
import type { LivePeer } from "./peer.ts";
import type { LiveState } from "./state.ts";

/** Addresses banned for good: bounded like all else. */
const MAX_BANNED = 1_000;
/** A few connections beyond the limit let newcomers of the crowd be told where to go. */
const KEPT_FOR_INCOMING = 8;

/** Whom to connect to, and whom to let in. */
export class Neighbours {
  readonly #state: LiveState;
  readonly #candidates = new Map<string, { readonly address: PeerAddress; restUntil: number }>();
  readonly #dialing = new Map<number, PeerAddress>();
  readonly #banned = new Set<string>();
  #nextConnection = 0;
  #findAt = 0;

  constructor(state: LiveState) {
    this.#state = state;
  }

  /** Connections at most. */
  get #most(): number {
    return this.#state.isSource || this.#state.setup.about.role === "relay"
      ? MAX_SOURCE_PEERS
      : MAX_LIVE_PEERS;
  }

  /** Addresses to try; those named by a refusal go first. */
  found(addresses: readonly PeerAddress[], isUrgent = false): void {
    const { isAllowed } = this.#state.setup;
    for (const address of addresses) {
      const key = addressText(address);
      if (this.#banned.has(key) || isAllowed?.(address) === false) continue;
      const known = this.#candidates.get(key);
      if (known) {
        if (isUrgent && known.restUntil === 0) {
          this.#candidates.delete(key);
          this.#candidates.set(key, known);
        }
        continue;
      }
      if (this.#candidates.size >= MAX_LIVE_CANDIDATES)
        this.#candidates.delete(this.#candidates.keys().next().value!);
      this.#candidates.set(key, { address, restUntil: 0 });
    }
  }

  /** Whether a call from this address is taken. */
  admits(address: PeerAddress): boolean {
    if (this.#state.isStopped || this.#banned.has(addressText(address))) return false;
    if (this.#state.setup.isAllowed?.(address) === false) return false;
    return this.#state.peers.size < this.#most && this.#inNetwork(address) < MAX_PEERS_PER_NETWORK;
  }

  /** The address of a connection that we asked for, once. */
  dialed(connection: number): PeerAddress | undefined {
    const address = this.#dialing.get(connection);
    this.#dialing.delete(connection);
    return address;
  }

  /** It is of no use for a while. */
  rest(address: PeerAddress): void {
    const candidate = this.#candidates.get(addressText(address));
    if (candidate) candidate.restUntil = this.#state.now + CANDIDATE_REST_MS;
  }

  forbid(peer: LivePeer): void {
    const key = addressText(peer.address);
    this.#candidates.delete(key);
    this.#banned.add(key);
    if (this.#banned.size > MAX_BANNED) this.#banned.delete(this.#banned.keys().next().value!);
  }

  /** Connects to more where there are too few. */
  round(): void {
    const { now, peers, isStopped } = this.#state;
    if (isStopped) return;
    const wanted = this.#state.isSource ? 2 * WANTED_PEERS : WANTED_PEERS;
    const connected = new Set([...peers.values()].map(({ address }) => addressText(address)));
    for (const address of this.#dialing.values()) connected.add(addressText(address));
    let room = Math.min(MAX_LIVE_HALF_OPEN - this.#dialing.size, wanted - peers.size - this.#dialing.size);
    // The newest first: they were there a moment ago.
    const candidates = room > 0 ? [...this.#candidates.entries()].reverse() : [];
    for (const [key, candidate] of candidates) {
      if (room <= 0) break;
      if (candidate.restUntil > now || connected.has(key)) continue;
      if (this.#inNetwork(candidate.address) >= MAX_PEERS_PER_NETWORK) continue;
      room--;
      this.#dial(candidate.address);
    }
    if (room > 0 && peers.size < wanted - KEPT_FOR_INCOMING && now >= this.#findAt) {
      this.#findAt = now + (peers.size === 0 ? FIND_INTERVAL_MS / 5 : FIND_INTERVAL_MS);
      this.#state.emit({ kind: "find" });
    }
  }

  #dial(address: PeerAddress): void {
    const connection = this.#nextConnection;
    this.#nextConnection += 2;
    this.#dialing.set(connection, address);
    this.#state.emit({ kind: "connect", connection, address });
  }

  #inNetwork(address: PeerAddress): number {
    const network = networkOf(address.host);
    let count = 0;
    for (const peer of this.#state.peers.values()) if (peer.network === network) count++;
    return count;
  }
}
