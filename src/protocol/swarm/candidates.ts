import { type AddressScope, addressScope, addressText, type PeerAddress } from "../../base/address.ts";
import { networkOf } from "../../base/network.ts";
import type { Random } from "../../base/random.ts";
import { after, type Instant } from "../../base/time.ts";
import { isPrivateOrigin, ORIGIN_SCORE, scopeRank } from "./candidate-origins.ts";
import type { Candidate, CandidateOrigin } from "./contract.ts";
import { MAX_CANDIDATES, MAX_PEERS_PER_ADDRESS } from "./limits.ts";

/** After n consecutive failures, an address is retried after 30 s · 2^(n − 1), at most an hour. */
const RETRY_MS = 30_000;
const MAX_RETRY_MS = 3_600_000;
/** Delay before reconnecting to a peer that was useful: most disconnects of such a peer are restarts or address changes. */
const USEFUL_RETRY_MS = 10_000;
/** An address that a tracker reported within this time (about one announce interval) ranks higher: its peer was active
 * recently. */
const FRESH_MS = 300_000;
/** If a swarm has more outgoing connections than this, `next` skips networks that have `MAX_PER_NETWORK` connections. */
const UNLIMITED_OUTGOING = 5;
const MAX_PER_NETWORK = 2;
/** Bans of one address before all its ports are banned: one bad peer behind a NAT must not block the others. */
const BANS_PER_HOST = 2;
/** Maximum number of remembered bans; the oldest are dropped. Equals `MAX_CANDIDATES`, so that the bans of a full list of
 * bad peers fit. */
const MAX_BANS = MAX_CANDIDATES;
/** Addresses accepted from one list; UDP trackers send up to about 200, HTTP trackers rarely more than 1,000. */
const MAX_ADDRESSES_AT_ONCE = 1_000;

interface Entry {
  readonly address: PeerAddress;
  readonly key: string;
  readonly network: string | undefined;
  readonly isLocal: boolean;
  /** Randomizes the order of equal candidates, so that engines do not all connect to the same peer first. */
  readonly salt: number;
  origin: CandidateOrigin;
  state: "idle" | "opening" | "connected";
  isOutgoing: boolean;
  failures: number;
  useful: number;
  reportedAt: Instant;
  retryAt: Instant;
  /** The peer is a seed, which is not useful while this engine has all pieces, too. */
  isSeed: boolean;
}

/**
 * The known addresses of a swarm. Decides which address to connect to next, which to retry later, and which are banned.
 * Limits the connections per address and per network, so that an attacker with many ports cannot surround this engine.
 */
export class Candidates {
  readonly #random: Random;
  readonly #entries = new Map<string, Entry>();
  /** Incoming connections by `ip:port`, each with the entry of the peer's listening port if known. */
  readonly #incoming = new Map<string, Entry | undefined>();
  readonly #perHost = new Map<string, number>();
  readonly #perNetwork = new Map<string, number>();
  readonly #bannedPorts = new Set<string>();
  readonly #bansOfHost = new Map<string, number>();
  readonly #own = new Set<string>();
  #outgoing = 0;
  /** No candidate is ready before this time. Infinity if no candidate waits for a retry; undefined if the time is unknown. */
  #quietUntil: number | undefined;

  constructor(random: Random) {
    this.#random = random;
  }

  /** Number of known addresses. */
  get size(): number {
    return this.#entries.size;
  }

  /**
   * Adds reported addresses; returns how many were new. `sender` is the peer that reported them by PEX: a sender
   * outside the local network cannot add addresses inside it, because it could make this engine attack local devices.
   */
  add(
    addresses: readonly PeerAddress[],
    origin: CandidateOrigin,
    now: Instant,
    sender?: PeerAddress,
  ): number {
    const reach = sender ? scopeRank(addressScope(sender.host)) : 3;
    let added = 0;
    for (const address of addresses.slice(0, MAX_ADDRESSES_AT_ONCE)) {
      const scope = addressScope(address.host);
      const rank = scopeRank(scope);
      if (rank === 0 || rank > reach || !isPort(address.port)) continue;
      const key = addressText(address);
      if (this.#own.has(key) || this.isBanned(address)) continue;
      const known = this.#entries.get(key);
      if (known) this.#refresh(known, origin, now);
      else {
        this.#entries.set(key, this.#entry(address, key, scope, origin, now));
        added++;
      }
    }
    this.#trim(now);
    this.#quietUntil = undefined;
    return added;
  }

  /**
   * Returns the best address to connect to now and marks it as opening; undefined if none is ready. The caller respects
   * `MAX_PEERS` and `MAX_HALF_OPEN`, and reports `opened` or `failed`. If `isComplete`, seeds are skipped, because this
   * engine has all pieces.
   */
  next(now: Instant, isComplete = false): Candidate | undefined {
    if (this.#quietUntil !== undefined && now < this.#quietUntil) return undefined;
    let best: Entry | undefined;
    let bestScore = Number.NEGATIVE_INFINITY;
    let soonest = Number.POSITIVE_INFINITY;
    for (const entry of this.#entries.values()) {
      if (entry.state !== "idle" || !this.#hasRoom(entry)) continue;
      if (isComplete && entry.isSeed) continue;
      if (entry.retryAt > now) {
        soonest = Math.min(soonest, entry.retryAt);
        continue;
      }
      const score = scoreOf(entry, now);
      if (score > bestScore) {
        best = entry;
        bestScore = score;
      }
    }
    if (!best) {
      this.#quietUntil = soonest;
      return undefined;
    }
    return this.#begin(best);
  }

  /** Like `next`, but for this address, even before its retry time. Returns undefined if the address is unknown, in use or
   * over a limit. */
  dial(address: PeerAddress): Candidate | undefined {
    const entry = this.#entries.get(addressText(address));
    return entry?.state === "idle" && this.#hasRoom(entry) ? this.#begin(entry) : undefined;
  }

  #begin(entry: Entry): Candidate {
    entry.state = "opening";
    entry.isOutgoing = true;
    this.#count(entry.address.host, entry.network, 1);
    return { address: entry.address, origin: entry.origin };
  }

  /** Records that the connection to an address from `next` is open. */
  opened(address: PeerAddress): void {
    const entry = this.#entries.get(addressText(address));
    if (entry?.state === "opening") entry.state = "connected";
  }

  /** Records that the connection to an address from `next` could not be opened, or failed during the handshake. */
  failed(address: PeerAddress, now: Instant): void {
    this.closed(address, now, false);
  }

  /** Registers an incoming connection; returns false if it must be refused (banned, or too many from its address). */
  accepted(address: PeerAddress): boolean {
    if (this.isBanned(address) || !this.#hasRoomOnHost(address.host)) return false;
    const key = addressText(address);
    if (this.#incoming.has(key)) return false;
    this.#incoming.set(key, undefined);
    this.#count(address.host, undefined, 1);
    return true;
  }

  /**
   * Records, for later connections, that the incoming peer at `address` listens on `port` (BEP 10 `p`). `next` does not
   * return that listening address while the peer is connected. Returns false if that address is banned.
   */
  listensOn(address: PeerAddress, port: number, now: Instant): boolean {
    const key = addressText(address);
    const listening = { host: address.host, port };
    if (!isPort(port) || !this.#incoming.has(key)) return true;
    if (this.isBanned(listening)) return false;
    this.add([listening], "incoming", now);
    const entry = this.#entries.get(addressText(listening));
    if (!entry) return true;
    this.#incoming.set(key, entry);
    if (entry.state === "idle") entry.state = "connected";
    return true;
  }

  /** Records that the peer at `address` has all pieces. */
  markSeed(address: PeerAddress): void {
    const key = addressText(address);
    const entry = this.#incoming.get(key) ?? this.#entries.get(key);
    if (entry) entry.isSeed = true;
  }

  /** Lets `next` return seeds again, because this engine no longer has all pieces. */
  becameIncomplete(): void {
    this.#quietUntil = undefined;
  }

  /** Records the end of an incoming or outgoing connection. `useful`: the peer sent or received verified data. */
  closed(address: PeerAddress, now: Instant, useful: boolean): void {
    const key = addressText(address);
    this.#quietUntil = undefined;
    if (this.#incoming.has(key)) {
      const entry = this.#incoming.get(key);
      this.#incoming.delete(key);
      this.#count(address.host, undefined, -1);
      if (entry) this.#release(entry, now, useful);
      return;
    }
    const entry = this.#entries.get(key);
    if (!entry || entry.state === "idle" || !entry.isOutgoing) return;
    this.#count(entry.address.host, entry.network, -1);
    entry.isOutgoing = false;
    this.#release(entry, now, useful);
  }

  /** Bans this address and port. After repeated bans of an address, all its ports are banned (except on loopback). */
  ban(address: PeerAddress): void {
    const key = addressText(address);
    const listening = this.#incoming.get(key);
    if (this.#bannedPorts.has(key)) return;
    this.#bannedPorts.add(key);
    if (listening) this.#bannedPorts.add(listening.key);
    dropOldest(this.#bannedPorts);
    if (addressScope(address.host) !== "loopback") {
      const bans = (this.#bansOfHost.get(address.host) ?? 0) + 1;
      this.#bansOfHost.delete(address.host);
      this.#bansOfHost.set(address.host, bans);
      dropOldest(this.#bansOfHost);
    }
    for (const entry of this.#entries.values()) {
      if (entry.state === "idle" && this.isBanned(entry.address)) this.#entries.delete(entry.key);
    }
  }

  /** Whether this address and port is banned. */
  isBanned(address: PeerAddress): boolean {
    if (this.#bannedPorts.has(addressText(address))) return true;
    return (this.#bansOfHost.get(address.host) ?? 0) >= BANS_PER_HOST;
  }

  /** Drops addresses that private content may not use (BEP 27), except those in use. The caller found the content private. */
  dropUnverifiedPeers(): void {
    for (const { key, isOutgoing, origin } of [...this.#entries.values()])
      if (!isOutgoing && !isPrivateOrigin(origin)) this.#entries.delete(key);
  }

  /** Returns at most `limit` addresses, best first; connected peers come before all others. */
  best(limit: number, now: Instant): Candidate[] {
    const score = (entry: Entry) => scoreOf(entry, now) + (entry.state === "connected" ? 1_000 : 0);
    const allowed = [...this.#entries.values()].filter((entry) => !this.isBanned(entry.address));
    const sorted = allowed.sort((a, b) => score(b) - score(a)).slice(0, limit);
    return sorted.map(({ address, origin }) => ({ address, origin }));
  }

  /** Records an address of this engine itself, to which it never connects. */
  exclude(address: PeerAddress): void {
    const key = addressText(address);
    this.#own.add(key);
    dropOldest(this.#own);
    if (this.#entries.get(key)?.state === "idle") this.#entries.delete(key);
  }

  /** Returns the time at which `next` may return a candidate again; undefined if only `add`, `closed` or `failed` can change
   * its result. */
  nextWake(): Instant | undefined {
    if (this.#quietUntil === undefined || this.#quietUntil === Number.POSITIVE_INFINITY) return undefined;
    return this.#quietUntil as Instant;
  }

  #entry(
    address: PeerAddress,
    key: string,
    scope: AddressScope,
    origin: CandidateOrigin,
    now: Instant,
  ): Entry {
    return {
      address,
      key,
      network: scope === "global" ? networkOf(address.host) : undefined,
      isLocal: scope !== "global",
      salt: this.#random(),
      origin,
      state: "idle",
      isOutgoing: false,
      failures: 0,
      useful: 0,
      reportedAt: now,
      retryAt: now,
      isSeed: false,
    };
  }

  #refresh(entry: Entry, origin: CandidateOrigin, now: Instant): void {
    if (ORIGIN_SCORE[origin] > ORIGIN_SCORE[entry.origin]) entry.origin = origin;
    // PEX is easy to forge, so it does not make an address fresh.
    if (origin !== "pex") entry.reportedAt = now;
  }

  #release(entry: Entry, now: Instant, useful: boolean): void {
    entry.state = "idle";
    if ([...this.#incoming.values()].includes(entry)) {
      // A duplicate connection to the same peer ended; the other one remains.
      entry.state = "connected";
    } else if (this.#own.has(entry.key) || this.isBanned(entry.address)) {
      this.#entries.delete(entry.key);
    } else if (useful) {
      entry.useful++;
      entry.failures = 0;
      entry.retryAt = after(now, USEFUL_RETRY_MS);
    } else {
      entry.retryAt = after(now, Math.min(RETRY_MS * 2 ** entry.failures, MAX_RETRY_MS));
      entry.failures++;
    }
  }

  #hasRoom(entry: Entry): boolean {
    if (!this.#hasRoomOnHost(entry.address.host)) return false;
    if (entry.network === undefined || this.#outgoing <= UNLIMITED_OUTGOING) return true;
    return (this.#perNetwork.get(entry.network) ?? 0) < MAX_PER_NETWORK;
  }

  #hasRoomOnHost(host: string): boolean {
    return (this.#perHost.get(host) ?? 0) < MAX_PEERS_PER_ADDRESS || addressScope(host) === "loopback";
  }

  #count(host: string, network: string | undefined, change: 1 | -1): void {
    bump(this.#perHost, host, change);
    if (network === undefined) return;
    this.#outgoing += change;
    bump(this.#perNetwork, network, change);
  }

  /** Drops the lowest-scored idle addresses. PEX scores lowest, so a flood of PEX cannot displace tracker peers. */
  #trim(now: Instant): void {
    let excess = this.#entries.size - MAX_CANDIDATES;
    if (excess <= 0) return;
    const idle = [...this.#entries.values()].filter((entry) => entry.state === "idle");
    idle.sort((a, b) => scoreOf(a, now) - scoreOf(b, now));
    for (const entry of idle) {
      if (excess-- <= 0) return;
      this.#entries.delete(entry.key);
    }
  }
}

/** Rates a candidate; higher is better. A local address, a credible and recent origin, and earlier usefulness raise the
 * score; failures lower it. */
function scoreOf(entry: Entry, now: Instant): number {
  const fresh = entry.origin === "tracker" && now - entry.reportedAt < FRESH_MS ? 15 : 0;
  return (
    ORIGIN_SCORE[entry.origin] +
    fresh +
    (entry.isLocal ? 60 : 0) +
    20 * Math.min(entry.useful, 3) -
    25 * Math.min(entry.failures, 8) +
    entry.salt
  );
}

function isPort(port: number): boolean {
  return Number.isInteger(port) && port > 0 && port < 65_536;
}

function bump(counts: Map<string, number>, key: string, change: 1 | -1): void {
  const count = (counts.get(key) ?? 0) + change;
  if (count > 0) counts.set(key, count);
  else counts.delete(key);
}

function dropOldest(remembered: Set<string> | Map<string, number>): void {
  while (remembered.size > MAX_BANS) {
    const [oldest] = remembered.keys();
    if (oldest === undefined) return;
    remembered.delete(oldest);
  }
}
