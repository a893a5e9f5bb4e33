import { addressScope, addressText, type PeerAddress } from "../../base/address.ts";
import { TokenBucket } from "../../base/rate.ts";
import type { Instant } from "../../base/time.ts";
import {
  decodeHolepunchMessage,
  encodeHolepunchMessage,
  HOLEPUNCH_ERROR,
} from "../../wire/peer/holepunch-message.ts";
import { PEX_HOLEPUNCH, type PexPeer } from "../../wire/peer/pex-message.ts";
import { MAX_CANDIDATES } from "./limits.ts";

/** What hole punching needs to know about a connected peer. */
export interface PunchPeer {
  /** The remote address of the connection, and the address at which the peer listens. */
  readonly address: PeerAddress;
  readonly listenAddress: PeerAddress | undefined;
  /** The id of the peer's holepunch messages (BEP 10); 0 if it does not support BEP 55. */
  readonly holepunchMessageId: number;
  /** The connection accepts messages. */
  readonly isOpen: boolean;
}

/** Operations that hole punching depends on. */
interface HolePunchDependencies<P extends PunchPeer> {
  /** Whether hole punching is enabled: uTP is available and the content is not private. */
  isOn(): boolean;
  peers(): Iterable<P>;
  send(peer: P, payload: Uint8Array): void;
  /** Connects to an address over uTP, as requested by `relay`. */
  connect(address: PeerAddress, relay: P): void;
}

/** A relay is not asked again for the same address within this time: if the NATs blocked the attempt, they still do. */
const RETRY_MS = 300_000;
/** Messages of one peer that are handled, per second and in a burst: a new swarm causes a burst, then few. Each `connect`
 * sends about 60 bytes to an address that the peer chose, the same as a PEX message does. */
const MESSAGES_PER_SECOND = 0.5;
const MESSAGE_BURST = 10;

/**
 * Connects peers that cannot be reached directly (BEP 55): a relay connected to both asks each to connect to the other
 * over uTP at the same time, so that each NAT sees an outgoing connection first. This class requests such connections,
 * makes them on request, and relays for others. Not for private content.
 */
export class HolePunch<P extends PunchPeer> {
  readonly #dependencies: HolePunchDependencies<P>;
  /** The peer that most recently reported each address that supports hole punching. */
  readonly #relays = new Map<string, P>();
  readonly #requestedAt = new Map<string, Instant>();
  readonly #messageBudgets = new Map<P, TokenBucket>();

  constructor(dependencies: HolePunchDependencies<P>) {
    this.#dependencies = dependencies;
  }

  get isOn(): boolean {
    return this.#dependencies.isOn();
  }

  /** A peer reported other peers by PEX. */
  reported(relay: P, peers: readonly PexPeer[]): void {
    if (!this.isOn) return;
    for (const { address, flags } of peers) {
      if ((flags & PEX_HOLEPUNCH) !== 0) remember(this.#relays, addressText(address), relay);
    }
  }

  /** Connecting to an address failed: asks the peer that reported it to relay. */
  failed(address: PeerAddress, now: Instant): void {
    const key = addressText(address);
    const relay = this.#relays.get(key);
    const requestedAt = this.#requestedAt.get(key);
    if (!this.isOn || !relay?.isOpen) return;
    if (requestedAt !== undefined && now - requestedAt < RETRY_MS) return;
    remember(this.#requestedAt, key, now);
    this.#send(relay, "rendezvous", address);
  }

  /** Takes a message. Throws `DecodeError`. */
  received(peer: P, payload: Uint8Array, now: Instant): void {
    const message = decodeHolepunchMessage(payload);
    if (!message || !this.isOn || !this.#isWithinRate(peer, now)) return;
    if (message.kind === "rendezvous") this.#relay(peer, message.address);
    else if (message.kind === "connect") this.#dependencies.connect(message.address, peer);
  }

  /** The connection has ended. */
  peerLeft(peer: P): void {
    this.#messageBudgets.delete(peer);
    for (const [key, relay] of this.#relays) if (relay === peer) this.#relays.delete(key);
  }

  /** Asks `requester` and the peer at `wanted` to connect to each other. */
  #relay(requester: P, wanted: PeerAddress): void {
    const target = this.#peerAt(wanted);
    const error = relayError(requester, target);
    if (error !== undefined || !target) {
      this.#send(requester, "error", wanted, error);
      return;
    }
    for (const address of addressesOf(requester)) this.#send(target, "connect", address);
    for (const address of addressesOf(target)) this.#send(requester, "connect", address);
  }

  #peerAt({ host, port }: PeerAddress): P | undefined {
    for (const peer of this.#dependencies.peers()) {
      if (!peer.isOpen || peer.address.host !== host) continue;
      if (peer.address.port === port || peer.listenAddress?.port === port) return peer;
    }
    return undefined;
  }

  #isWithinRate(peer: P, now: Instant): boolean {
    const budget = this.#messageBudgets.get(peer) ?? new TokenBucket(MESSAGES_PER_SECOND, MESSAGE_BURST);
    this.#messageBudgets.set(peer, budget);
    return budget.take(1, now);
  }

  #send(peer: P, kind: "rendezvous" | "connect" | "error", address: PeerAddress, error = 0): void {
    if (peer.holepunchMessageId === 0) return;
    this.#dependencies.send(peer, encodeHolepunchMessage({ kind, address, error }));
  }
}

/** The BEP 55 error code if the two peers cannot be connected; undefined if they can. */
function relayError(requester: PunchPeer, target: PunchPeer | undefined): number | undefined {
  if (!target) return HOLEPUNCH_ERROR.notConnected;
  if (target === requester) return HOLEPUNCH_ERROR.noSuchPeer;
  if (target.holepunchMessageId === 0 || requester.holepunchMessageId === 0) return HOLEPUNCH_ERROR.noSupport;
  // An address of the local network is useless outside it, and private.
  const isGlobal = (peer: PunchPeer) => addressScope(peer.address.host) === "global";
  return isGlobal(requester) === isGlobal(target) ? undefined : HOLEPUNCH_ERROR.notConnected;
}

/** The addresses at which a peer can be met. A peer connected over uTP is reachable at the source of its packets; a peer
 * connected over TCP at its listening port, which its NAT may preserve. The transport is unknown here, so both are sent. */
function addressesOf({ address, listenAddress }: PunchPeer): PeerAddress[] {
  return !listenAddress || listenAddress.port === address.port ? [address] : [address, listenAddress];
}

function remember<T>(map: Map<string, T>, key: string, value: T): void {
  map.delete(key);
  map.set(key, value);
  const [oldest] = map.keys();
  if (oldest !== undefined && map.size > MAX_CANDIDATES) map.delete(oldest);
}
