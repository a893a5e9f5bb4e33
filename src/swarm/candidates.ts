import {
  type AddressScope,
  addressBytes,
  addressScope,
  addressText,
  type PeerAddress,
} from "../base/address.ts";
import { toHex } from "../base/bytes.ts";
import type { Random } from "../base/random.ts";
import { after, type Instant } from "../base/time.ts";
import { isPrivateOrigin, ORIGIN_WORTH, scopeRank } from "./candidate-origins.ts";
import type { Candidate, CandidateOrigin } from "./contract.ts";
import { MAX_CANDIDATES, MAX_PEERS_PER_ADDRESS } from "./limits.ts";

/** After the n-th failure in a row an address rests 30 s · 2^n, at most an hour. */
const RETRY_MS = 30_000;
const MAX_RETRY_MS = 3_600_000;
/** A peer that was useful is welcome back soon: most drops are restarts and address changes. */
const USEFUL_RETRY_MS = 10_000;
/** A tracker's word is fresh for one usual announce interval or less: the peer was there a moment ago. */
const FRESH_MS = 300_000;
/** With this many outgoing connections or fewer any address will do; beyond, no network may hold more than two. */
const HANDFUL = 5;
const MAX_PER_NETWORK = 2;
/** Bans of one address before all its ports are banned: behind one NAT a single liar must not cost the others. */
const BANS_PER_HOST = 2;
/** Bans remembered; the oldest go first. As many as candidates, so that a full list of liars is still remembered. */
const MAX_BANS = MAX_CANDIDATES;
/** Addresses taken from one list; UDP trackers send up to about 200, HTTP ones seldom more than 1,000. */
const MAX_ADDRESSES_AT_ONCE = 1_000;

interface Entry {
  readonly address: PeerAddress;
  readonly key: string;
  readonly network: string | undefined;
  readonly isLocal: boolean;
  /** Spreads equals, so that not every engine asks the same peer first. */
  readonly salt: number;
  origin: CandidateOrigin;
  state: "idle" | "opening" | "connected";
  isOutgoing: boolean;
  failures: number;
  useful: number;
  toldAt: Instant;
  retryAt: Instant;
  /** It has everything: of no use while we have, too. */
  isSeed: boolean;
}

/**
 * The addresses of a swarm that we could connect to: which next, which rest after failures, which are banned.
 * Keeps to a few connections for each address and network, so that nobody with many ports can surround us.
 */
export class Candidates {
  readonly #random: Random;
  readonly #entries = new Map<string, Entry>();
  /** Incoming connections by `ip:port`, each with the entry of the port that its peer listens on, once known. */
  readonly #incoming = new Map<string, Entry | undefined>();
  readonly #perHost = new Map<string, number>();
  readonly #perNetwork = new Map<string, number>();
  readonly #bannedPorts = new Set<string>();
  readonly #bansOfHost = new Map<string, number>();
  readonly #own = new Set<string>();
  #outgoing = 0;
  /** Nothing is ready before this; undefined: not known. Infinity: nothing waits at all. */
  #quietUntil: number | undefined;

  constructor(random: Random) {
    this.#random = random;
  }

  /** How many addresses are known. */
  get size(): number {
    return this.#entries.size;
  }

  /** How many addresses (with port) have been banned. */
  get bannedCount(): number {
    return this.#bannedPorts.size;
  }

  /**
   * Takes addresses somebody told us of; returns how many were new. `sender` is the peer that told us by PEX: one
   * outside our network may not point us at addresses inside it (a way to make us attack routers and printers).
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
      if (known) this.#toldAgain(known, origin, now);
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
   * The best address to connect to now, which then counts as being opened, or undefined when none is ready. The
   * caller keeps to `MAX_PEERS` and `MAX_HALF_OPEN`, and says `opened`, or `failed` without it. `isComplete`: we have
   * everything, and look for nobody who has, too.
   */
  next(now: Instant, isComplete = false): Candidate | undefined {
    if (this.#quietUntil !== undefined && now < this.#quietUntil) return undefined;
    let best: Entry | undefined;
    let bestWorth = Number.NEGATIVE_INFINITY;
    let soonest = Number.POSITIVE_INFINITY;
    for (const entry of this.#entries.values()) {
      if (entry.state !== "idle" || !this.#hasRoom(entry)) continue;
      if (isComplete && entry.isSeed) continue;
      if (entry.retryAt > now) {
        soonest = Math.min(soonest, entry.retryAt);
        continue;
      }
      const worth = worthOf(entry, now);
      if (worth > bestWorth) {
        best = entry;
        bestWorth = worth;
      }
    }
    if (!best) {
      this.#quietUntil = soonest;
      return undefined;
    }
    return this.#begin(best);
  }

  /** The same for this very address, whether it rests or not: undefined where it is unknown, called already or one too many. */
  call(address: PeerAddress): Candidate | undefined {
    const entry = this.#entries.get(addressText(address));
    return entry?.state === "idle" && this.#hasRoom(entry) ? this.#begin(entry) : undefined;
  }

  #begin(entry: Entry): Candidate {
    entry.state = "opening";
    entry.isOutgoing = true;
    this.#count(entry.address.host, entry.network, 1);
    return { address: entry.address, origin: entry.origin };
  }

  /** The connection that `next` gave is open. */
  opened(address: PeerAddress, _now: Instant): void {
    const entry = this.#entries.get(addressText(address));
    if (entry?.state === "opening") entry.state = "connected";
  }

  /** The connection that `next` gave could not be opened, or broke in its handshake. */
  failed(address: PeerAddress, now: Instant): void {
    this.closed(address, now, false);
  }

  /** An incoming connection; false where it must be refused (banned, or too many from its address). */
  accepted(address: PeerAddress, _now: Instant): boolean {
    if (this.isBanned(address) || !this.#hasRoomOnHost(address.host)) return false;
    const key = addressText(address);
    if (this.#incoming.has(key)) return false;
    this.#incoming.set(key, undefined);
    this.#count(address.host, undefined, 1);
    return true;
  }

  /**
   * The incoming peer `address` says that it listens on `port` (BEP 10 `p`): remembered, so that it can be reached
   * later, and not connected to a second time while it is here. False where that address is banned.
   */
  listens(address: PeerAddress, port: number, now: Instant): boolean {
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

  /** The peer at `address` has everything. */
  seeds(address: PeerAddress): void {
    const key = addressText(address);
    const entry = this.#incoming.get(key) ?? this.#entries.get(key);
    if (entry) entry.isSeed = true;
  }

  /** We no longer have everything: seeds are of use again. */
  missing(): void {
    this.#quietUntil = undefined;
  }

  /** A connection of either direction ended. `useful`: it gave us verified data, or took some. */
  closed(address: PeerAddress, now: Instant, useful: boolean): void {
    const key = addressText(address);
    this.#quietUntil = undefined;
    if (this.#incoming.has(key)) {
      const entry = this.#incoming.get(key);
      this.#incoming.delete(key);
      this.#count(address.host, undefined, -1);
      if (entry) this.#rest(entry, now, useful);
      return;
    }
    const entry = this.#entries.get(key);
    if (!entry || entry.state === "idle" || !entry.isOutgoing) return;
    this.#count(entry.address.host, entry.network, -1);
    entry.isOutgoing = false;
    this.#rest(entry, now, useful);
  }

  /** Never again: this address and port; after repeated bans all ports of the address (not on loopback). */
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

  /** Whether this address (with port) is banned. */
  isBanned(address: PeerAddress): boolean {
    if (this.#bannedPorts.has(addressText(address))) return true;
    return (this.#bansOfHost.get(address.host) ?? 0) >= BANS_PER_HOST;
  }

  /** The content has turned out to be private: whom only others told of is forgotten, if we are not calling it now. */
  forgetHearsay(): void {
    for (const { key, isOutgoing, origin } of [...this.#entries.values()])
      if (!isOutgoing && !isPrivateOrigin(origin)) this.#entries.delete(key);
  }

  /** The best addresses to call, those of connected peers first; at most `limit`. */
  best(limit: number, now: Instant): Candidate[] {
    const worth = (entry: Entry) => worthOf(entry, now) + (entry.state === "connected" ? 1_000 : 0);
    const allowed = [...this.#entries.values()].filter((entry) => !this.isBanned(entry.address));
    const sorted = allowed.sort((a, b) => worth(b) - worth(a)).slice(0, limit);
    return sorted.map(({ address, origin }) => ({ address, origin }));
  }

  /** This address turned out to be ourselves: never a candidate again. */
  exclude(address: PeerAddress): void {
    const key = addressText(address);
    this.#own.add(key);
    dropOldest(this.#own);
    if (this.#entries.get(key)?.state === "idle") this.#entries.delete(key);
  }

  /** When `next` may have something again; undefined: only after `add`, `closed` or `failed`. */
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
      toldAt: now,
      retryAt: now,
      isSeed: false,
    };
  }

  #toldAgain(entry: Entry, origin: CandidateOrigin, now: Instant): void {
    if (ORIGIN_WORTH[origin] > ORIGIN_WORTH[entry.origin]) entry.origin = origin;
    // PEX is cheap to forge, so that only the others make an address fresh again.
    if (origin !== "pex") entry.toldAt = now;
  }

  #rest(entry: Entry, now: Instant, useful: boolean): void {
    entry.state = "idle";
    if ([...this.#incoming.values()].includes(entry)) {
      // Of two connections to one peer this one was given up: the other goes on.
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
    if (entry.network === undefined || this.#outgoing <= HANDFUL) return true;
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

  /** Pushes out the least promising. What PEX told goes before what trackers told: anyone can flood us by PEX. */
  #trim(now: Instant): void {
    let excess = this.#entries.size - MAX_CANDIDATES;
    if (excess <= 0) return;
    const idle = [...this.#entries.values()].filter((entry) => entry.state === "idle");
    idle.sort((a, b) => worthOf(a, now) - worthOf(b, now));
    for (const entry of idle) {
      if (excess-- <= 0) return;
      this.#entries.delete(entry.key);
    }
  }
}

/** Higher is better: near, told by somebody credible and lately, useful before, seldom failing. */
function worthOf(entry: Entry, now: Instant): number {
  const fresh = entry.origin === "tracker" && now - entry.toldAt < FRESH_MS ? 15 : 0;
  return (
    ORIGIN_WORTH[entry.origin] +
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

/** The /24 of an IPv4 address, the /64 of an IPv6 one: what one party usually holds at least. */
export function networkOf(host: string): string {
  const bytes = addressBytes(host)!;
  return toHex(bytes.subarray(0, bytes.length === 4 ? 3 : 8));
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
