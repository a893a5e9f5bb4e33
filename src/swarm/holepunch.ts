import { addressScope, addressText, type PeerAddress } from "../base/address.ts";
import { TokenBucket } from "../base/rate.ts";
import type { Instant } from "../base/time.ts";
import {
  decodeHolepunchMessage,
  encodeHolepunchMessage,
  HOLEPUNCH_ERROR,
} from "../wire/holepunch-message.ts";
import { PEX_HOLEPUNCH, type PexPeer } from "../wire/pex-message.ts";
import type { ConnectionId } from "./contract.ts";
import { MAX_CANDIDATES } from "./limits.ts";
import type { Peer } from "./peer.ts";
import type { SwarmState } from "./state.ts";

/** For the same address no peer is asked again within this time: NATs that did not let us through then do not now. */
const ASK_AGAIN_MS = 300_000;
/** Messages of one peer that we act on, a second and at once: a swarm of strangers is called in a burst, rarely after. Each
 * `connect` makes us send some 60 bytes to an address of the peer's choice, as a list of peers does. */
const MESSAGES_PER_SECOND = 0.5;
const MESSAGE_BURST = 10;

/**
 * Brings peers together that nobody can call (BEP 55): a peer that both are connected with tells each to call the other over
 * uTP at the same moment, so that each router sees its own side call first. We ask for it, do it when told, and tell
 * others. Not for private content.
 */
export class HolePunch {
  readonly #state: SwarmState;
  /** Calls an address over uTP. */
  readonly #call: (address: PeerAddress) => void;
  /** Who told us last of an address that can be reached so. */
  readonly #tellers = new Map<string, ConnectionId>();
  readonly #askedAt = new Map<string, Instant>();
  readonly #patience = new Map<ConnectionId, TokenBucket>();

  constructor(state: SwarmState, call: (address: PeerAddress) => void) {
    this.#state = state;
    this.#call = call;
  }

  /** Whether we take part. */
  get isOn(): boolean {
    return this.#state.setup.punches === true && this.#state.pieces?.layout.isPrivate !== true;
  }

  /** A peer tells of others. */
  told(teller: Peer, peers: readonly PexPeer[]): void {
    if (!this.isOn) return;
    for (const { address, flags } of peers) {
      if ((flags & PEX_HOLEPUNCH) !== 0) remember(this.#tellers, addressText(address), teller.connection);
    }
  }

  /** A call was not answered: whoever told us of that address is asked to help. */
  failed(address: PeerAddress): void {
    const { peers, now } = this.#state;
    if (!this.isOn) return;
    const key = addressText(address);
    const relay = peers.get(this.#tellers.get(key) ?? -1);
    const askedAt = this.#askedAt.get(key);
    if (relay?.stage !== "open" || relay.holepunchMessageId === 0) return;
    if (askedAt !== undefined && now - askedAt < ASK_AGAIN_MS) return;
    remember(this.#askedAt, key, now);
    tell(relay, "rendezvous", address);
  }

  /** Takes a message. Throws `DecodeError`. */
  received(peer: Peer, payload: Uint8Array): void {
    const message = decodeHolepunchMessage(payload);
    if (!message || !this.isOn || !this.#bears(peer)) return;
    if (message.kind === "rendezvous") this.#introduce(peer, message.address);
    else if (message.kind === "connect") this.#connect(peer, message.address);
  }

  /** The connection is over. */
  left(peer: Peer): void {
    this.#patience.delete(peer.connection);
  }

  /** Tells two peers of each other. */
  #introduce(asker: Peer, wanted: PeerAddress): void {
    const target = this.#peerAt(wanted);
    const problem = problemWith(asker, target);
    if (problem !== undefined || !target) {
      tell(asker, "error", wanted, problem);
      return;
    }
    for (const address of addressesOf(asker)) tell(target, "connect", address);
    for (const address of addressesOf(target)) tell(asker, "connect", address);
  }

  #connect(relay: Peer, address: PeerAddress): void {
    const { candidates, now } = this.#state;
    // As with addresses told in lists, nobody outside our network points us at what is inside.
    candidates.add([address], "pex", now, relay.address);
    this.#call(address);
  }

  #peerAt({ host, port }: PeerAddress): Peer | undefined {
    for (const peer of this.#state.peers.values()) {
      if (peer.stage !== "open" || peer.address.host !== host) continue;
      if (peer.address.port === port || peer.listenAddress?.port === port) return peer;
    }
    return undefined;
  }

  #bears(peer: Peer): boolean {
    const { now } = this.#state;
    const patience =
      this.#patience.get(peer.connection) ?? new TokenBucket(MESSAGES_PER_SECOND, MESSAGE_BURST);
    this.#patience.set(peer.connection, patience);
    return patience.take(1, now);
  }
}

/** Why the two cannot be brought together, as BEP 55 numbers it; undefined where they can. */
function problemWith(asker: Peer, target: Peer | undefined): number | undefined {
  if (!target) return HOLEPUNCH_ERROR.notConnected;
  if (target === asker) return HOLEPUNCH_ERROR.noSuchPeer;
  if (target.holepunchMessageId === 0 || asker.holepunchMessageId === 0) return HOLEPUNCH_ERROR.noSupport;
  // An address inside our network is of no use outside, and nobody's business.
  const isOutside = (peer: Peer) => addressScope(peer.address.host) === "global";
  return isOutside(asker) === isOutside(target) ? undefined : HOLEPUNCH_ERROR.notConnected;
}

/** Where a peer may be met. One that called us over uTP is where its packets come from; one that did over TCP where it says
 * that it listens, as its router may keep the port. Which of the two it was is not known here, so both are told. */
function addressesOf(peer: Peer): PeerAddress[] {
  const { address, listenAddress } = peer;
  return !listenAddress || listenAddress.port === address.port ? [address] : [address, listenAddress];
}

function tell(peer: Peer, kind: "rendezvous" | "connect" | "error", address: PeerAddress, error = 0): void {
  if (peer.holepunchMessageId === 0) return;
  peer.writer.extended(peer.holepunchMessageId, encodeHolepunchMessage({ kind, address, error }));
}

function remember<T>(map: Map<string, T>, key: string, value: T): void {
  map.delete(key);
  map.set(key, value);
  const [oldest] = map.keys();
  if (oldest !== undefined && map.size > MAX_CANDIDATES) map.delete(oldest);
}
