import { addressScope, addressText, familyOf, type PeerAddress } from "../../base/address.ts";
import { fromHex, toHex } from "../../base/bytes.ts";
import { type Random, randomBelow, shuffle } from "../../base/random.ts";
import { after, type Instant } from "../../base/time.ts";
import type { AddressFamily } from "../../wire/compact-peers.ts";
import type { InfohashSamples } from "../../wire/krpc.ts";
import {
  MAX_PORTS_PER_PEER,
  MAX_STORED_PEERS,
  MAX_SWARM_PEERS,
  MAX_SWARMS,
  PEER_MS,
  SAMPLE_COUNT,
  SAMPLE_MS,
} from "./limits.ts";
import { isTellable } from "./scope.ts";

/** A peer that somebody announced. */
export interface StoredPeer {
  readonly address: PeerAddress;
  readonly isSeed: boolean;
  readonly until: Instant;
}

/** The peers that others have announced to us, by infohash (BEP 5): for half an hour, and not more than there is room for. */
export class PeerStore {
  readonly #random: Random;
  /** By infohash in hex; within, by address, the longest unheard first. */
  readonly #swarms = new Map<string, Map<string, StoredPeer>>();
  #count = 0;
  #sample: { readonly until: Instant; readonly infohashes: Uint8Array } | undefined;

  constructor(random: Random) {
    this.#random = random;
  }

  /** How many peers are kept. */
  get size(): number {
    return this.#count;
  }

  /** Keeps a peer. Where there is no room in all, nothing is done; in a swarm, the longest unheard goes. */
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

  /** Up to `count` peers of a swarm by chance, of the family of the asker, that may be told to it. */
  peers(infohash: Uint8Array, asker: string, count: number, now: Instant): PeerAddress[] {
    const family = familyOf(asker);
    const askerScope = addressScope(asker);
    const found: PeerAddress[] = [];
    for (const { address, until } of this.#swarms.get(toHex(infohash))?.values() ?? [])
      if (
        until > now &&
        familyOf(address.host) === family &&
        isTellable(addressScope(address.host), askerScope)
      )
        found.push(address);
    return shuffle(found, this.#random).slice(0, count);
  }

  /** All peers of a swarm in one family, to be counted (BEP 33). */
  members(infohash: Uint8Array, family: AddressFamily, now: Instant): StoredPeer[] {
    const members = [...(this.#swarms.get(toHex(infohash))?.values() ?? [])];
    return members.filter(({ address, until }) => until > now && familyOf(address.host) === family);
  }

  /** Some infohashes by chance (BEP 51): the same for ten minutes, whoever asks. */
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

  /** Forgets those whose time is over. */
  expire(now: Instant): void {
    for (const [hex, swarm] of this.#swarms) {
      // The longest unheard come first.
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

  /** Chosen by chance in one pass (reservoir). */
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
