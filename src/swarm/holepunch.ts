import { addressScope, addressText, type PeerAddress } from "../base/address.ts";
import { TokenBucket } from "../base/rate.ts";
import type { Instant } from "../base/time.ts";
import {
  decodeHolepunchMessage,
  encodeHolepunchMessage,
  HOLEPUNCH_ERROR,
} from "../wire/holepunch-message.ts";
import { PEX_HOLEPUNCH, type PexPeer } from "../wire/pex-message.ts";
import { MAX_CANDIDATES } from "./limits.ts";

/** A connected peer, as hole punching knows it. */
export interface PunchPeer {
  /** Where its connection comes from, or goes to; and where it says that it listens. */
  readonly address: PeerAddress;
  readonly listenAddress: PeerAddress | undefined;
  /** The number of its messages (BEP 10); 0 where it does not know BEP 55. */
  readonly holepunchMessageId: number;
  /** Messages may be sent. */
  readonly isOpen: boolean;
}

/** What hole punching needs of a swarm. */
export interface PunchHost<P extends PunchPeer> {
  /** Whether we take part: where uTP is spoken, and content is not private. */
  isOn(): boolean;
  peers(): Iterable<P>;
  send(peer: P, payload: Uint8Array): void;
  /** Calls an address over uTP, as `relay` says. */
  call(address: PeerAddress, relay: P): void;
}

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
export class HolePunch<P extends PunchPeer> {
  readonly #host: PunchHost<P>;
  /** Who told us last of an address that can be reached so. */
  readonly #tellers = new Map<string, P>();
  readonly #askedAt = new Map<string, Instant>();
  readonly #patience = new Map<P, TokenBucket>();

  constructor(host: PunchHost<P>) {
    this.#host = host;
  }

  get isOn(): boolean {
    return this.#host.isOn();
  }

  /** A peer tells of others. */
  told(teller: P, peers: readonly PexPeer[]): void {
    if (!this.isOn) return;
    for (const { address, flags } of peers) {
      if ((flags & PEX_HOLEPUNCH) !== 0) remember(this.#tellers, addressText(address), teller);
    }
  }

  /** A call was not answered: whoever told us of that address is asked to help. */
  failed(address: PeerAddress, now: Instant): void {
    const key = addressText(address);
    const relay = this.#tellers.get(key);
    const askedAt = this.#askedAt.get(key);
    if (!this.isOn || !relay?.isOpen) return;
    if (askedAt !== undefined && now - askedAt < ASK_AGAIN_MS) return;
    remember(this.#askedAt, key, now);
    this.#tell(relay, "rendezvous", address);
  }

  /** Takes a message. Throws `DecodeError`. */
  received(peer: P, payload: Uint8Array, now: Instant): void {
    const message = decodeHolepunchMessage(payload);
    if (!message || !this.isOn || !this.#bears(peer, now)) return;
    if (message.kind === "rendezvous") this.#introduce(peer, message.address);
    else if (message.kind === "connect") this.#host.call(message.address, peer);
  }

  /** The connection is over. */
  left(peer: P): void {
    this.#patience.delete(peer);
    for (const [key, teller] of this.#tellers) if (teller === peer) this.#tellers.delete(key);
  }

  /** Tells two peers of each other. */
  #introduce(asker: P, wanted: PeerAddress): void {
    const target = this.#peerAt(wanted);
    const problem = problemWith(asker, target);
    if (problem !== undefined || !target) {
      this.#tell(asker, "error", wanted, problem);
      return;
    }
    for (const address of addressesOf(asker)) this.#tell(target, "connect", address);
    for (const address of addressesOf(target)) this.#tell(asker, "connect", address);
  }

  #peerAt({ host, port }: PeerAddress): P | undefined {
    for (const peer of this.#host.peers()) {
      if (!peer.isOpen || peer.address.host !== host) continue;
      if (peer.address.port === port || peer.listenAddress?.port === port) return peer;
    }
    return undefined;
  }

  #bears(peer: P, now: Instant): boolean {
    const patience = this.#patience.get(peer) ?? new TokenBucket(MESSAGES_PER_SECOND, MESSAGE_BURST);
    this.#patience.set(peer, patience);
    return patience.take(1, now);
  }

  #tell(peer: P, kind: "rendezvous" | "connect" | "error", address: PeerAddress, error = 0): void {
    if (peer.holepunchMessageId === 0) return;
    this.#host.send(peer, encodeHolepunchMessage({ kind, address, error }));
  }
}

/** Why the two cannot be brought together, as BEP 55 numbers it; undefined where they can. */
function problemWith(asker: PunchPeer, target: PunchPeer | undefined): number | undefined {
  if (!target) return HOLEPUNCH_ERROR.notConnected;
  if (target === asker) return HOLEPUNCH_ERROR.noSuchPeer;
  if (target.holepunchMessageId === 0 || asker.holepunchMessageId === 0) return HOLEPUNCH_ERROR.noSupport;
  // An address inside our network is of no use outside, and nobody's business.
  const isOutside = (peer: PunchPeer) => addressScope(peer.address.host) === "global";
  return isOutside(asker) === isOutside(target) ? undefined : HOLEPUNCH_ERROR.notConnected;
}

/** Where a peer may be met. One that called us over uTP is where its packets come from; one that did over TCP where it says
 * that it listens, as its router may keep the port. Which of the two it was is not known here, so both are told. */
function addressesOf({ address, listenAddress }: PunchPeer): PeerAddress[] {
  return !listenAddress || listenAddress.port === address.port ? [address] : [address, listenAddress];
}

function remember<T>(map: Map<string, T>, key: string, value: T): void {
  map.delete(key);
  map.set(key, value);
  const [oldest] = map.keys();
  if (oldest !== undefined && map.size > MAX_CANDIDATES) map.delete(oldest);
}
