import { addressScope, addressText, type PeerAddress } from "../base/address.ts";
import { after, type Instant } from "../base/time.ts";
import { MAX_BAN_MS } from "../protocol/live/limits.ts";
import type { CandidateOrigin } from "../protocol/swarm/contract.ts";
import { PEX_HOLEPUNCH, PEX_REACHABLE, type PexPeer } from "../wire/peer/pex-message.ts";
import type { PeerLink } from "./peer-link.ts";

/** An address that did not answer is not shared, and not connected to because of PEX, for this long. */
const UNREACHABLE_MS = 600_000;
/** Limit of remembered addresses of each kind; the oldest are forgotten. */
const MAX_REMEMBERED = 500;
/** A machine has one or two addresses. */
const MAX_OWN = 16;

/** What is known of peer addresses: which may be connected to, which may connect, and which are shared. */
export class LiveAddresses {
  readonly bans = new LiveBans();
  readonly #only: readonly PeerAddress[] | undefined;
  #relays: ReadonlySet<string>;
  readonly #own = new Set<string>();
  readonly #unreachable = new Map<string, Instant>();
  readonly #origins = new Map<string, CandidateOrigin>();

  /** `only`: the peers of a private source. `relays`: those that the source lists. */
  constructor(only: readonly PeerAddress[] | undefined, relays: readonly PeerAddress[] = []) {
    this.#only = only;
    this.#relays = new Set(relays.map(addressText));
  }

  /** Replaces the relays that the source lists; an empty list changes nothing. */
  listRelays(relays: readonly PeerAddress[]): void {
    if (relays.length > 0) this.#relays = new Set(relays.map(addressText));
  }

  /** Whether the source lists a relay at this address. */
  isRelay(address: PeerAddress): boolean {
    return this.#relays.has(addressText(address));
  }

  /** The number of remembered addresses. */
  get known(): number {
    return this.#origins.size;
  }

  /** Remembers the origin of addresses, and returns those that may be connected to. */
  found(addresses: readonly PeerAddress[], origin: CandidateOrigin, now: Instant): PeerAddress[] {
    const allowed = addresses.filter((address) => address.port !== 0 && this.mayConnect(address, now));
    for (const address of allowed) {
      const key = addressText(address);
      if (!this.#origins.has(key)) remember(this.#origins, key, origin);
    }
    // An address that did not answer recently is not tried again because another peer names it.
    return origin === "pex" ? allowed.filter((address) => this.isReachable(address, now)) : allowed;
  }

  originOf(address: PeerAddress): CandidateOrigin {
    return this.#origins.get(addressText(address)) ?? "pex";
  }

  mayConnect(address: PeerAddress, now: Instant): boolean {
    if (this.#only && !this.#only.some((each) => addressText(each) === addressText(address))) return false;
    return !this.#own.has(addressText(address)) && !this.bans.has(address, now);
  }

  /** Whether a peer at this address may connect. Its port does not matter. */
  admits(remote: PeerAddress, now: Instant): boolean {
    if (this.#only && !this.#only.some(({ host }) => host === remote.host)) return false;
    return !this.bans.has(remote, now);
  }

  /** The address is our own. */
  addOwn(address: PeerAddress): void {
    if (this.#own.size < MAX_OWN) this.#own.add(addressText(address));
  }

  /** The address did not answer. */
  markUnreachable(address: PeerAddress, now: Instant): void {
    remember(this.#unreachable, addressText(address), after(now, UNREACHABLE_MS));
  }

  markReachable(address: PeerAddress): void {
    this.#unreachable.delete(addressText(address));
  }

  /** Whether other peers can connect to it, as far as known. */
  isReachable(address: PeerAddress, now: Instant): boolean {
    const until = this.#unreachable.get(addressText(address));
    return until === undefined || now >= until;
  }

  /** Returns the peers to share by PEX. */
  shareable(links: readonly PeerLink[], now: Instant): PexPeer[] {
    return links.flatMap(({ listenAddress, isIncoming, holepunchMessageId }) => {
      const canPunch = holepunchMessageId !== 0;
      if (!listenAddress || !(canPunch || this.isReachable(listenAddress, now))) return [];
      return [
        { address: listenAddress, flags: (isIncoming ? 0 : PEX_REACHABLE) | (canPunch ? PEX_HOLEPUNCH : 0) },
      ];
    });
  }
}

function remember<V>(map: Map<string, V>, key: string, value: V): void {
  map.delete(key);
  map.set(key, value);
  if (map.size > MAX_REMEMBERED) map.delete(map.keys().next().value!);
}

/** After this many banned addresses on one host, the whole host is banned: its ports cost nothing. */
const MAX_BANS_PER_HOST = 3;
/** Limit of remembered bans; the oldest are forgotten. */
const MAX_BANS = 1_000;

interface Ban {
  until: Instant;
  count: number;
}

/** Addresses that broke the protocol. */
class LiveBans {
  readonly #addresses = new Map<string, Ban>();
  readonly #hosts = new Map<string, Ban>();

  /** The number of remembered bans, including expired ones. */
  get size(): number {
    return this.#addresses.size;
  }

  add(address: PeerAddress, now: Instant, forMs = MAX_BAN_MS): void {
    addBan(this.#addresses, addressText(address), now, forMs);
    // Programs on this machine share its address.
    if (addressScope(address.host) !== "loopback") addBan(this.#hosts, address.host, now, forMs);
  }

  has(address: PeerAddress, now: Instant): boolean {
    const ban = this.#addresses.get(addressText(address));
    if (ban && now < ban.until) return true;
    const host = this.#hosts.get(address.host);
    return host !== undefined && now < host.until && host.count >= MAX_BANS_PER_HOST;
  }
}

function addBan(bans: Map<string, Ban>, key: string, now: Instant, forMs: number): void {
  const known = bans.get(key);
  const count = known && now < known.until ? known.count + 1 : 1;
  bans.delete(key);
  bans.set(key, { until: after(now, forMs), count });
  if (bans.size > MAX_BANS) bans.delete(bans.keys().next().value!);
}
