import { addressScope, addressText, familyOf, type PeerAddress } from "../../base/address.ts";
import { fromHex, toHex } from "../../base/bytes.ts";
import { type Random, randomBelow, shuffle } from "../../base/random.ts";
import { after, type Instant } from "../../base/time.ts";
import type { AddressFamily } from "../../wire/compact-peers.ts";
import type { InfohashSamples } from "../../wire/dht/krpc.ts";
import {
  MAX_PORTS_PER_PEER,
  MAX_STORED_PEERS,
  MAX_SWARM_PEERS,
  MAX_SWARMS,
  PEER_MS,
  SAMPLE_COUNT,
  SAMPLE_MS,
} from "./limits.ts";
import { isShareable } from "./scope.ts";

/** An announced peer. */
interface StoredPeer {
  readonly address: PeerAddress;
  readonly isSeed: boolean;
  readonly until: Instant;
}

/** Peers announced to this node by infohash (BEP 5), for half an hour and within limits. */
export class PeerStore {
  readonly #random: Random;
  /** By infohash in hex, then by address; least recently announced first. */
  readonly #swarms = new Map<string, Map<string, StoredPeer>>();
  #count = 0;
  #sample: { readonly until: Instant; readonly infohashes: Uint8Array } | undefined;

  constructor(random: Random) {
    this.#random = random;
  }

  /** Number of stored peers. */
  get size(): number {
    return this.#count;
  }

  /** Stores a peer. A full store ignores it; a full swarm drops its least recently announced peer. */
  add(infohash: Uint8Array, address: PeerAddress, isSeed: boolean, now: Instant): void {
    const hex = toHex(infohash);
    const swarm = this.#swarms.get(hex) ?? new Map<string, StoredPeer>();
    const key = addressText(address);
    if (swarm.delete(key)) this.#count--;
    else if (portsOf(swarm, address.host) >= MAX_PORTS_PER_PEER) return;
    if (swarm.size >= MAX_SWARM_PEERS) this.#forget(swarm, swarm.keys().next().value!);
    if (this.#count >= MAX_STORED_PEERS || (swarm.size === 0 && this.#swarms.size >= MAX_SWARMS)) {
      this.expire(now);
      if (this.#count >= MAX_STORED_PEERS || (swarm.size === 0 && this.#swarms.size >= MAX_SWARMS)) return;
    }
    swarm.set(key, { address, isSeed, until: after(now, PEER_MS) });
    this.#swarms.set(hex, swarm);
    this.#count++;
  }

  /** Returns up to `count` random peers of a swarm that may be shared with `asker` and have its address family. */
  peers(infohash: Uint8Array, asker: string, count: number, now: Instant): PeerAddress[] {
    const family = familyOf(asker);
    const askerScope = addressScope(asker);
    const found: PeerAddress[] = [];
    for (const { address, until } of this.#swarms.get(toHex(infohash))?.values() ?? [])
      if (
        until > now &&
        familyOf(address.host) === family &&
        isShareable(addressScope(address.host), askerScope)
      )
        found.push(address);
    return shuffle(found, this.#random).slice(0, count);
  }

  /** Returns all peers of a swarm in one family, for Bloom filters (BEP 33). */
  members(infohash: Uint8Array, family: AddressFamily, now: Instant): StoredPeer[] {
    const members = [...(this.#swarms.get(toHex(infohash))?.values() ?? [])];
    return members.filter(({ address, until }) => until > now && familyOf(address.host) === family);
  }

  /** Returns random infohashes (BEP 51): the same sample for ten minutes. */
  samples(now: Instant): InfohashSamples {
    if (!this.#sample || this.#sample.until <= now) {
      this.expire(now);
      const chosen = this.#chosen();
      const infohashes = new Uint8Array(20 * chosen.length);
      for (const [i, hex] of chosen.entries()) infohashes.set(fromHex(hex)!, 20 * i);
      this.#sample = { until: after(now, SAMPLE_MS), infohashes };
    }
    const intervalSeconds = Math.ceil((this.#sample.until - now) / 1000);
    return { infohashes: this.#sample.infohashes, count: this.#swarms.size, intervalSeconds };
  }

  /** Drops expired peers. */
  expire(now: Instant): void {
    for (const [hex, swarm] of this.#swarms) {
      // Sorted by expiry.
      for (const [key, { until }] of swarm) {
        if (until > now) break;
        this.#forget(swarm, key);
      }
      if (swarm.size === 0) this.#swarms.delete(hex);
    }
  }

  #forget(swarm: Map<string, StoredPeer>, key: string): void {
    if (swarm.delete(key)) this.#count--;
  }

  /** Chooses a random sample in one pass (reservoir sampling). */
  #chosen(): string[] {
    const chosen: string[] = [];
    let seen = 0;
    for (const hex of this.#swarms.keys()) {
      const at = randomBelow(this.#random, ++seen);
      if (chosen.length < SAMPLE_COUNT) chosen.push(hex);
      else if (at < SAMPLE_COUNT) chosen[at] = hex;
    }
    return chosen;
  }
}

function portsOf(swarm: ReadonlyMap<string, StoredPeer>, host: string): number {
  let count = 0;
  for (const { address } of swarm.values()) if (address.host === host) count++;
  return count;
}
