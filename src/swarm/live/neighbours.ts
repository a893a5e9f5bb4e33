import { addressScope, addressText, type PeerAddress } from "../../base/address.ts";
import { networkOf } from "../candidates.ts";
import {
  CANDIDATE_REST_MS,
  FIND_INTERVAL_MS,
  MANY_PEERS,
  MAX_LIVE_CANDIDATES,
  MAX_LIVE_HALF_OPEN,
  MAX_LIVE_PEERS,
  MAX_PEERS_NEARBY,
  MAX_PEERS_PER_NETWORK,
  MAX_SOURCE_PEERS,
  PAUSE_MS,
  WANTED_PEERS,
} from "./limits.ts";
import type { LivePeer } from "./peer.ts";
import type { LiveState } from "./state.ts";

/** So long nobody at a banned address is called or let in: at homes somebody else has it tomorrow. Bounded like all else. */
const BANNED_MS = 600_000;
const MAX_BANNED = 1_000;
/** Who cannot be reached is called at doubling intervals, up to so many times the first: swarms come back, too. */
const MAX_REST_FACTOR = 8;
/** So many more are sought while stripes have no parent; below so few, more are asked for often. */
const MORE_PEERS = 8;
const FEW_PEERS = 8;
/** Addresses that refusals named last: each is called once, also where there are neighbours enough. */
const MAX_NAMED = 8;
/** How often one of no use makes room, and for how long each may show its use. */
const PART_MS = 300;
const YOUNG_PEER_MS = 2_000;
/** Who is behind one address is banned with it after so many liars: one household has one, a liar has many ports. */
const BANS_PER_HOST = 2;
/** The source and relays are called again so soon, since a restart takes seconds; after a minute at doubling intervals. */
const PILLAR_REST_MS = 250;
const MAX_PILLAR_REST_MS = 1_000;
const PATIENT_CALLS = 60;
/** Sources and relays that are remembered as such: the role is a claim. One more takes the place of who is gone for longest. */
const MAX_PILLARS = 32;
/** More addresses are asked for so soon when the last source or relay has gone. */
const FIND_SOON_MS = 500;
/** A few connections beyond the limit let newcomers of the crowd be told where to go. */
const KEPT_FOR_INCOMING = 8;

/** An address to call. */
interface Candidate {
  readonly address: PeerAddress;
  restUntil: number;
  /** Calls in vain since it was last there. */
  failures: number;
}

/** Whom to connect to, and whom to let in. */
export class Neighbours {
  readonly #state: LiveState;
  readonly #candidates = new Map<string, Candidate>();
  /** Those of them that were the source or a relay. */
  readonly #pillars = new Map<string, Candidate>();
  /** Named by those who refused us: worth a connection beyond those that are wanted in any case. */
  readonly #named = new Map<string, PeerAddress>();
  readonly #dialing = new Map<number, PeerAddress>();
  /** Until when, by address; by host, where several of its ports are. */
  readonly #banned = new Map<string, number>();
  readonly #part: (peer: LivePeer) => void;
  #partAt = 0;
  #nextConnection = 0;
  #findAt = 0;

  /** `part` ends a connection. */
  constructor(state: LiveState, part: (peer: LivePeer) => void) {
    this.#state = state;
    this.#part = part;
  }

  /** Connections at most: who can feed many must be found by many. */
  get #most(): number {
    return this.#withSlots(MAX_LIVE_PEERS);
  }

  #withSlots(peers: number): number {
    const { about } = this.#state.setup;
    if (about.role !== "viewer") return MAX_SOURCE_PEERS;
    const slots = about.uploadBytesPerSecond / this.#state.stripeRate;
    return Math.min(MAX_SOURCE_PEERS, peers + Math.floor(slots));
  }

  /** Addresses to try; those named by a refusal go first. */
  found(addresses: readonly PeerAddress[], isUrgent = false): void {
    const { isAllowed } = this.#state.setup;
    for (const address of addresses) {
      const key = addressText(address);
      if (this.#isBanned(address) || isAllowed?.(address) === false) continue;
      if (isUrgent) {
        this.#named.delete(key);
        this.#named.set(key, address);
        if (this.#named.size > MAX_NAMED) this.#named.delete(this.#named.keys().next().value!);
      }
      const known = this.#candidates.get(key);
      if (known) {
        if (isUrgent && known.restUntil === 0) {
          this.#candidates.delete(key);
          this.#candidates.set(key, known);
        }
        continue;
      }
      this.#add(address);
    }
  }

  /** A connection stands. The source and relays are remembered, so that we find them again. */
  opened(peer: LivePeer): void {
    if (!peer.isReachable) return;
    const known = this.#candidates.get(peer.key);
    if (known) known.failures = 0;
    if (!peer.isPillar) return;
    const candidate = known ?? this.#add(peer.address);
    if (this.#pillars.has(peer.key)) return;
    if (this.#pillars.size >= MAX_PILLARS) {
      const [key, gone] = [...this.#pillars].reduce((a, b) => (b[1].failures > a[1].failures ? b : a));
      if (gone.failures < PATIENT_CALLS) return;
      this.#pillars.delete(key);
    }
    this.#pillars.set(peer.key, candidate);
  }

  /** A peer has left. Without the source or a relay, others are sought at once. */
  left(peer: LivePeer): void {
    this.rest(peer.address);
    const { now, setup, peers } = this.#state;
    if (!peer.isPillar || [...peers.values()].some(({ isPillar }) => isPillar)) return;
    this.#findAt = Math.min(this.#findAt, now + (1 + setup.random()) * FIND_SOON_MS);
  }

  #add(address: PeerAddress): Candidate {
    if (this.#candidates.size >= MAX_LIVE_CANDIDATES) {
      for (const least of this.#candidates.keys()) {
        if (this.#pillars.has(least)) continue;
        this.#candidates.delete(least);
        break;
      }
    }
    // Relays that a source lists may start after it, and a private source has nobody else.
    const { isSource, setup } = this.#state;
    const key = addressText(address);
    const candidate = { address, restUntil: 0, failures: 0 };
    this.#candidates.set(key, candidate);
    if (isSource && setup.isRelay?.(address) === true) this.#pillars.set(key, candidate);
    return candidate;
  }

  /** Whether a call from this address is taken. */
  admits(address: PeerAddress): boolean {
    if (this.#state.isStopped || this.#isBanned(address)) return false;
    if (this.#state.setup.isAllowed?.(address) === false) return false;
    return this.#state.peers.size < this.#most && this.#hasNetworkRoom(address);
  }

  /** The address of a connection that we asked for, once. */
  dialed(connection: number): PeerAddress | undefined {
    const address = this.#dialing.get(connection);
    this.#dialing.delete(connection);
    this.#state.opening = this.#dialing.size;
    return address;
  }

  /** It is of no use for a while. */
  rest(address: PeerAddress): void {
    const candidate = this.#candidates.get(addressText(address));
    if (!candidate) return;
    const isPillar = this.#pillars.has(addressText(address));
    candidate.restUntil = this.#state.now + this.#restMs(candidate, isPillar);
    candidate.failures++;
  }

  #restMs({ failures }: Candidate, isPillar: boolean): number {
    if (!isPillar) return CANDIDATE_REST_MS * Math.min(MAX_REST_FACTOR, 2 ** failures);
    const { random } = this.#state.setup;
    const soonMs = Math.min(PILLAR_REST_MS * 2 ** Math.min(failures, 10), MAX_PILLAR_REST_MS);
    const lateMs = soonMs * 2 ** Math.max(0, Math.min(failures - PATIENT_CALLS, 10));
    return Math.min(CANDIDATE_REST_MS, lateMs) * (0.75 + 0.5 * random());
  }

  forbid(peer: LivePeer): void {
    const { now } = this.#state;
    const { key } = peer;
    const host = hostKey(peer.address);
    this.#candidates.delete(key);
    this.#pillars.delete(key);
    const ports = [...this.#banned].filter(([other, until]) => until > now && other.startsWith(`${host}:`));
    this.#ban(key);
    // In a home or on one machine a single liar must not cost the others.
    if (!peer.isNear && ports.length + 1 >= BANS_PER_HOST) this.#ban(host);
  }

  #ban(key: string): void {
    this.#banned.delete(key);
    this.#banned.set(key, this.#state.now + BANNED_MS);
    while (this.#banned.size > MAX_BANNED) this.#banned.delete(this.#banned.keys().next().value!);
  }

  /** Connects to more where there are too few, or where those who are there have no room for our `orphans`. */
  round(orphans: number): void {
    const { peers, isStopped, isEnding } = this.#state;
    if (isStopped || isEnding) return;
    const wanted = this.#state.isSource ? 2 * WANTED_PEERS : WANTED_PEERS + Math.min(orphans, MORE_PEERS);
    const isFull = peers.size > this.#most - KEPT_FOR_INCOMING;
    if (isFull || (orphans > 0 && peers.size >= wanted)) this.#makeRoom(orphans);
    let room = Math.min(MAX_LIVE_HALF_OPEN, wanted - peers.size) - this.#dialing.size;
    if (room > 0 || this.#named.size > 0 || this.#pillars.size > 0) {
      const connected = new Set<string>();
      for (const { key } of peers.values()) connected.add(key);
      for (const address of this.#dialing.values()) connected.add(addressText(address));
      this.#callFirst(connected);
      if (room > 0) room -= this.#callMore(connected, room);
    }
    this.#find(orphans, room);
  }

  /** Calls as many as there is room for: the newest first, they were there a moment ago. */
  #callMore(connected: ReadonlySet<string>, room: number): number {
    const { now } = this.#state;
    const free = [...this.#candidates].filter(
      ([key, { restUntil }]) => restUntil <= now && !connected.has(key),
    );
    let called = 0;
    for (let i = free.length - 1; i >= 0 && called < room; i--) {
      const { address } = free[i]![1];
      if (!this.#hasNetworkRoom(address)) continue;
      called++;
      this.#dial(address);
    }
    return called;
  }

  /** Calls those who are worth a connection beyond those that are wanted: named ones, the source, and relays. */
  #callFirst(connected: Set<string>): void {
    const { now, peers } = this.#state;
    const dial = (key: string, address: PeerAddress) => {
      if (connected.has(key) || (this.#candidates.get(key)?.restUntil ?? 0) > now) return;
      if (this.#dialing.size >= MAX_LIVE_HALF_OPEN || !this.#hasNetworkRoom(address)) return;
      connected.add(key);
      this.#dial(address);
    };
    for (const [key, { address }] of this.#pillars) dial(key, address);
    for (const [key, address] of this.#named) {
      this.#named.delete(key);
      if (peers.size + this.#dialing.size < this.#withSlots(MANY_PEERS)) dial(key, address);
    }
  }

  /** Asks for more addresses where there are too few, or where the stream stands still and its source is none of ours. */
  #find(orphans: number, room: number): void {
    const { now, peers, isSource, headAt, window } = this.#state;
    if (now < this.#findAt) return;
    const enough = (isSource ? 2 : 1) * WANTED_PEERS - KEPT_FOR_INCOMING;
    const isStill = !isSource && window.head >= 0 && now - headAt > PAUSE_MS;
    const isBereft = isStill && ![...peers.values()].some(({ isPillar }) => isPillar);
    const isShort = room > 0 && (orphans > 0 || peers.size < enough);
    if (!isShort && !isBereft) return;
    const isUrgent = peers.size < FEW_PEERS || orphans > 0;
    this.#findAt = now + (isUrgent ? FIND_INTERVAL_MS / 5 : FIND_INTERVAL_MS);
    this.#state.emit({ kind: "find" });
  }

  /** Parts with one who neither gives nor takes, and, where we seek parents, has no room for us. */
  #makeRoom(orphans: number): void {
    const { now, peers } = this.#state;
    if (now < this.#partAt) return;
    this.#partAt = now + PART_MS;
    for (const peer of peers.values()) {
      if (peer.parentOf !== 0 || peer.childOf !== 0 || now - peer.openedAt < YOUNG_PEER_MS) continue;
      if (peer.about.role !== "viewer") continue;
      if (orphans > 0 && (peer.window?.freeSlots ?? 0) > 0) continue;
      this.#part(peer);
      return;
    }
  }

  #dial(address: PeerAddress): void {
    const connection = this.#nextConnection;
    this.#nextConnection += 2;
    this.#dialing.set(connection, address);
    this.#state.opening = this.#dialing.size;
    this.#state.emit({ kind: "connect", connection, address });
  }

  #isBanned(address: PeerAddress): boolean {
    return [addressText(address), hostKey(address)].some(
      (key) => (this.#banned.get(key) ?? 0) > this.#state.now,
    );
  }

  /** So that nobody who holds one network holds all our connections; a home or a lab is one network, too. */
  #hasNetworkRoom({ host }: PeerAddress): boolean {
    const network = networkOf(host);
    const most = addressScope(host) === "global" ? MAX_PEERS_PER_NETWORK : MAX_PEERS_NEARBY;
    let count = 0;
    for (const peer of this.#state.peers.values()) if (peer.network === network) count++;
    return count < most;
  }
}

/** Stands for all ports of an address. */
function hostKey({ host }: PeerAddress): string {
  return host.includes(":") ? `[${host}]` : host;
}
