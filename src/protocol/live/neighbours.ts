import { addressText, type PeerAddress } from "../../base/address.ts";
import type { LiveCandidate } from "../../wire/live/endpoint.ts";
import { Crowding } from "./crowding.ts";
import { DialLimit } from "./dial-limit.ts";
import {
  ACTIVE_PEER_SILENT_MS,
  CANDIDATE_RETRY_MS,
  FIND_INTERVAL_MS,
  FIRST_WIN_TIMEOUT_MS,
  MAX_BAN_MS,
  MAX_LIVE_CANDIDATES,
  MAX_LIVE_HALF_OPEN,
  MAX_LIVE_PEERS,
  MAX_REFERRED_PEERS,
  MAX_SOURCE_PEERS,
  PEER_TIMEOUT_MS,
  PING_MS,
  SOURCE_PAUSE_MS,
  WANTED_PEERS,
} from "./limits.ts";
import type { LiveAbout, LiveMessage } from "./messages.ts";
import type { LivePeer } from "./peer.ts";
import type { LiveState } from "./state.ts";

const MAX_BANNED = 1_000;
/** An unreachable address is dialed at doubling intervals, up to this multiple of the first, because swarms
 * return. */
const MAX_RETRY_FACTOR = 8;
/** Extra connections while stripes have no parent. Below `FEW_PEERS`, addresses are requested more often. */
const EXTRA_PEERS = 8;
const FEW_PEERS = 8;
/** The newest candidates of refusals. Each is dialed once, even if there are enough neighbours. */
const MAX_REFERRED = 8;
/** Interval at which a useless neighbour is replaced. */
const CLOSE_USELESS_MS = 300;
/** After this number of bans the whole host is banned: a liar can use many ports. */
const BANS_PER_HOST = 2;
/** The source and relays are dialed again early, because a restart takes seconds. After
 * `FREQUENT_RELAY_CALLS` the delay doubles. */
const RELAY_RETRY_MS = 250;
const MAX_RELAY_RETRY_MS = 1_000;
const FREQUENT_RELAY_CALLS = 60;
/** Remembered sources and relays; the role is a claim. A new one replaces the one that failed most often. */
const MAX_RELAYS = 32;
/** More addresses are requested after about this time when the last source or relay has left. */
const FIND_SOON_MS = 500;
/** Connections reserved for incoming newcomers, which learn from a refusal where to go. */
const RESERVED_FOR_INCOMING = 8;

/** An address to dial. */
interface Candidate {
  readonly address: PeerAddress;
  retryAt: number;
  /** Failed attempts since the last success. */
  failures: number;
}

/** Decides which connections to open, accept, probe and close. */
export class Neighbours {
  readonly #state: LiveState;
  readonly #candidates = new Map<string, Candidate>();
  /** The candidates that were the source or a relay. */
  readonly #relays = new Map<string, Candidate>();
  /** Candidates named in refusals: dialed beyond the usual number of connections. */
  readonly #referred = new Map<string, PeerAddress>();
  readonly #dialing = new Map<number, PeerAddress>();
  /** The bans by address, and by host if several of its ports are banned. An expired one is kept, because the next one
   * is longer. */
  readonly #banned = new Map<string, { readonly until: number; readonly forMs: number }>();
  readonly #close: (peer: LivePeer, reason: string) => void;
  readonly #crowding: Crowding;
  readonly #dialLimit = new DialLimit();
  #closeUselessAt = 0;
  #nextConnection = 0;
  #findAt = 0;

  constructor(state: LiveState, close: (peer: LivePeer, reason: string) => void) {
    this.#state = state;
    this.#crowding = new Crowding(state);
    this.#close = close;
  }

  /** After a restart, a program connects from the address of its old connection, which may not be closed
   * yet. */
  #replace(address: PeerAddress, { digest }: LiveAbout): void {
    const { peers, now } = this.#state;
    const key = addressText(address);
    for (const peer of [...peers.values()]) {
      if (peer.key !== key || peer.about.digest === digest) continue;
      if (now - peer.heardAt > ACTIVE_PEER_SILENT_MS) this.#close(peer, "the peer restarted");
    }
  }

  /** The maximum number of connections. It grows with the upload, so that many peers can find a peer with
   * free slots. */
  get #maxPeers(): number {
    return this.#withSlots(MAX_LIVE_PEERS);
  }

  #withSlots(peers: number): number {
    const { about } = this.#state.setup;
    if (about.role !== "viewer") return MAX_SOURCE_PEERS;
    const slots = about.uploadBytesPerSecond / this.#state.stripeRate;
    return Math.min(MAX_SOURCE_PEERS, peers + Math.floor(slots));
  }

  /** Adds the candidates of a SUBNO or BYE, which are dialed first. */
  referred(candidates: readonly LiveCandidate[]): void {
    this.found(
      candidates.map(({ address }) => address),
      true,
    );
  }

  /** Adds addresses to dial; urgent ones come first. */
  found(addresses: readonly PeerAddress[], isUrgent = false): void {
    const { isAllowed } = this.#state.setup;
    for (const address of addresses) {
      const key = addressText(address);
      if (this.#isBanned(address) || isAllowed?.(address) === false) continue;
      if (isUrgent) {
        this.#referred.delete(key);
        this.#referred.set(key, address);
        if (this.#referred.size > MAX_REFERRED) this.#referred.delete(this.#referred.keys().next().value!);
      }
      const known = this.#candidates.get(key);
      if (known) {
        if (isUrgent && known.retryAt === 0) {
          this.#candidates.delete(key);
          this.#candidates.set(key, known);
        }
        continue;
      }
      this.#add(address);
    }
  }

  /** A connection is open. If it leads to the source or a relay, the address is remembered. */
  opened(peer: LivePeer): void {
    if (!peer.isReachable) return;
    const known = this.#candidates.get(peer.key);
    if (known) known.failures = 0;
    if (!peer.isSourceOrRelay) return;
    const candidate = known ?? this.#add(peer.address);
    if (this.#relays.has(peer.key)) return;
    if (this.#relays.size >= MAX_RELAYS) {
      const [key, gone] = [...this.#relays].reduce((a, b) => (b[1].failures > a[1].failures ? b : a));
      if (gone.failures < FREQUENT_RELAY_CALLS) return;
      this.#relays.delete(key);
    }
    this.#relays.set(peer.key, candidate);
  }

  /** A peer has left. If no source or relay remains, more addresses are requested early. */
  left(peer: LivePeer): void {
    this.failed(peer.address);
    const { now, setup, peers } = this.#state;
    if (!peer.isSourceOrRelay || [...peers.values()].some(({ isSourceOrRelay }) => isSourceOrRelay)) return;
    this.#findAt = Math.min(this.#findAt, now + (1 + setup.random()) * FIND_SOON_MS);
  }

  #add(address: PeerAddress): Candidate {
    if (this.#candidates.size >= MAX_LIVE_CANDIDATES) {
      for (const least of this.#candidates.keys()) {
        if (this.#relays.has(least)) continue;
        this.#candidates.delete(least);
        break;
      }
    }
    // A listed relay may start later than the source, and a private source has no other peers.
    const { isSource, setup } = this.#state;
    const key = addressText(address);
    const candidate = { address, retryAt: 0, failures: 0 };
    this.#candidates.set(key, candidate);
    if (isSource && setup.isRelay?.(address) === true) this.#relays.set(key, candidate);
    return candidate;
  }

  /** Whether an incoming connection from this address is accepted. If there are too many, an idle one is closed for
   * it: connections that are open but of no use must not keep newcomers out. */
  admits(address: PeerAddress, about: LiveAbout): boolean {
    this.#replace(address, about);
    if (this.#state.isStopped || this.#isBanned(address)) return false;
    if (this.#state.setup.isAllowed?.(address) === false) return false;
    const crowd = this.#crowding.at(address, this.#maxPeers);
    if (!crowd) return true;
    const idle = this.#crowding.mostDispensable(crowd);
    if (idle) this.#close(idle, "idle while another peer needs the connection");
    return idle !== undefined;
  }

  /** Whether `admits` could accept an incoming connection from this address: known before the peer introduces itself, so that a flood
   * beyond the limits costs no handshake. */
  mayAdmit(address: PeerAddress): boolean {
    const crowd = this.#crowding.at(address, this.#maxPeers);
    if (!crowd || this.#crowding.mostDispensable(crowd)) return true;
    // A peer that has restarted replaces its old connection.
    const { now } = this.#state;
    return crowd.some(
      (peer) => peer.address.host === address.host && now - peer.heardAt > ACTIVE_PEER_SILENT_MS,
    );
  }

  /** Returns the address of an outgoing connection, and forgets it. */
  dialed(connection: number): PeerAddress | undefined {
    const address = this.#dialing.get(connection);
    this.#dialing.delete(connection);
    this.#state.opening = this.#dialing.size;
    return address;
  }

  /** Delays the next attempt for an address. */
  failed(address: PeerAddress): void {
    const candidate = this.#candidates.get(addressText(address));
    if (!candidate || this.#isBanned(address)) return;
    const isSourceOrRelay = this.#relays.has(addressText(address));
    candidate.retryAt = this.#state.now + this.#retryMs(candidate, isSourceOrRelay);
    candidate.failures++;
  }

  #retryMs({ failures }: Candidate, isSourceOrRelay: boolean): number {
    if (!isSourceOrRelay) return CANDIDATE_RETRY_MS * Math.min(MAX_RETRY_FACTOR, 2 ** failures);
    const { random } = this.#state.setup;
    const soonMs = Math.min(RELAY_RETRY_MS * 2 ** Math.min(failures, 10), MAX_RELAY_RETRY_MS);
    const lateMs = soonMs * 2 ** Math.max(0, Math.min(failures - FREQUENT_RELAY_CALLS, 10));
    return Math.min(CANDIDATE_RETRY_MS, lateMs) * (0.75 + 0.5 * random());
  }

  /** Bans the address of a peer for `forMs`, or twice its last ban if that is longer. Returns the time. The address is
   * dialed again when the ban has expired. */
  forbid(peer: LivePeer, forMs: number): number {
    const { now } = this.#state;
    const { key } = peer;
    const host = hostKey(peer.address);
    const ports = [...this.#banned].filter(
      ([other, { until }]) => until > now && other.startsWith(`${host}:`),
    );
    const bannedMs = this.#ban(key, forMs);
    const candidate = this.#candidates.get(key);
    if (candidate) candidate.retryAt = now + bannedMs;
    // One liar in a private network must not exclude the others.
    if (!peer.isLocal && ports.length + 1 >= BANS_PER_HOST) this.#ban(host, forMs);
    return bannedMs;
  }

  #ban(key: string, forMs: number): number {
    const bannedMs = Math.min(MAX_BAN_MS, Math.max(forMs, 2 * (this.#banned.get(key)?.forMs ?? 0)));
    this.#banned.delete(key);
    this.#banned.set(key, { until: this.#state.now + bannedMs, forMs: bannedMs });
    while (this.#banned.size > MAX_BANNED) this.#banned.delete(this.#banned.keys().next().value!);
    return bannedMs;
  }

  /** Opens connections if there are too few, or if the neighbours have no room for our `orphans` (stripes
   * without a parent). */
  round(orphans: number): void {
    const { peers, isStopped, isEnding } = this.#state;
    if (isStopped || isEnding) return;
    const wanted = this.#state.isSource ? 2 * WANTED_PEERS : WANTED_PEERS + Math.min(orphans, EXTRA_PEERS);
    const isFull = peers.size > this.#maxPeers - RESERVED_FOR_INCOMING;
    if (isFull || (orphans > 0 && peers.size >= wanted)) this.#closeUseless(orphans);
    let room = Math.min(MAX_LIVE_HALF_OPEN, wanted - peers.size) - this.#dialing.size;
    if (room > 0 || this.#referred.size > 0 || this.#relays.size > 0) {
      const connected = new Set<string>();
      for (const { key } of peers.values()) connected.add(key);
      for (const address of this.#dialing.values()) connected.add(addressText(address));
      this.#dialFirst(connected);
      if (room > 0) room -= this.#dialMore(connected, room);
    }
    this.#find(orphans, room);
  }

  /** Dials up to `room` candidates, the newest first. Returns how many. */
  #dialMore(connected: ReadonlySet<string>, room: number): number {
    const { now } = this.#state;
    const free = [...this.#candidates].filter(([key, { retryAt }]) => retryAt <= now && !connected.has(key));
    let dialed = 0;
    for (let i = free.length - 1; i >= 0 && dialed < room; i--) {
      const { address } = free[i]![1];
      if (this.#isBanned(address) || !this.#crowding.hasRoom(address) || !this.#mayDial(address)) continue;
      dialed++;
      this.#dial(address);
    }
    return dialed;
  }

  /** Dials candidates beyond the usual number of connections: the source, relays, and those that refusals
   * named. */
  #dialFirst(connected: Set<string>): void {
    const { now, peers } = this.#state;
    const dial = (key: string, address: PeerAddress) => {
      if (connected.has(key) || this.#isBanned(address) || (this.#candidates.get(key)?.retryAt ?? 0) > now)
        return;
      if (this.#dialing.size >= MAX_LIVE_HALF_OPEN || !this.#crowding.hasRoom(address)) return;
      if (!this.#mayDial(address)) return;
      connected.add(key);
      this.#dial(address);
    };
    for (const [key, { address }] of this.#relays) dial(key, address);
    for (const [key, address] of this.#referred) {
      this.#referred.delete(key);
      if (peers.size + this.#dialing.size < this.#withSlots(MAX_REFERRED_PEERS)) dial(key, address);
    }
  }

  /** Requests more addresses if there are too few, or if the stream stalls and no source or relay is
   * connected. */
  #find(orphans: number, room: number): void {
    const { now, peers, isSource, headAt, window } = this.#state;
    if (now < this.#findAt) return;
    const enough = (isSource ? 2 : 1) * WANTED_PEERS - RESERVED_FOR_INCOMING;
    const isStalled = !isSource && window.head >= 0 && now - headAt > SOURCE_PAUSE_MS;
    const hasNoRelay = isStalled && ![...peers.values()].some(({ isSourceOrRelay }) => isSourceOrRelay);
    const isShort = room > 0 && (orphans > 0 || peers.size < enough);
    if (!isShort && !hasNoRelay) return;
    const isUrgent = peers.size < FEW_PEERS || orphans > 0;
    this.#findAt = now + (isUrgent ? FIND_INTERVAL_MS / 5 : FIND_INTERVAL_MS);
    this.#state.emit({ kind: "find" });
  }

  /** Closes one neighbour that neither sends nor receives and, while stripes have no parent, has no free
   * slot. */
  #closeUseless(orphans: number): void {
    const { now, peers } = this.#state;
    if (now < this.#closeUselessAt) return;
    this.#closeUselessAt = now + CLOSE_USELESS_MS;
    const useless = [...peers.values()].filter(
      (peer) => this.#crowding.isIdle(peer) && (orphans === 0 || (peer.window?.freeSlots ?? 0) === 0),
    );
    const peer = this.#crowding.mostDispensable(useless) ?? useless[0];
    if (peer) this.#close(peer, "useless to each other");
  }

  /** Answers a PING; measures the round trip if a PONG answers our last PING. */
  pinged(peer: LivePeer, message: LiveMessage & { kind: "ping" | "pong" }): void {
    if (message.kind === "ping") this.#state.send(peer, { ...message, kind: "pong" });
    else if (message.token === peer.pingedAt) {
      peer.rttMs = 0.75 * peer.rttMs + 0.25 * (this.#state.now - peer.pingedAt);
    }
  }

  /** Closes silent connections and sends PING to the others when it is due. */
  ping(): void {
    const { now, peers } = this.#state;
    for (const peer of [...peers.values()]) {
      const silentMs = now - peer.heardAt;
      if (silentMs > (peer.window ? PEER_TIMEOUT_MS : FIRST_WIN_TIMEOUT_MS)) this.#close(peer, "timed out");
      if (now - Math.max(peer.pingedAt, peer.openedAt) < PING_MS) continue;
      peer.pingedAt = now;
      this.#state.send(peer, { kind: "ping", token: now, clockMs: 0 });
    }
  }

  /** Whether the host of an address may be dialed once more. The source and relays have proved their address. */
  #mayDial(address: PeerAddress): boolean {
    return this.#relays.has(addressText(address)) || this.#dialLimit.take(address, this.#state.now);
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
      (key) => (this.#banned.get(key)?.until ?? 0) > this.#state.now,
    );
  }
}

/** The ban key of all ports of an address. */
function hostKey({ host }: PeerAddress): string {
  return host.includes(":") ? `[${host}]` : host;
}
