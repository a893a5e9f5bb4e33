import { addressBytes, addressFromBytes, type PeerAddress } from "../../base/address.ts";
import { assert } from "../../base/assert.ts";
import { latin1Text, readU16, writeU16 } from "../../base/bytes.ts";
import { type Infohash, infohashBytes } from "../../base/ids.ts";
import { householdOf } from "../../base/network.ts";
import { type Random, randomBelow } from "../../base/random.ts";
import type { Instant } from "../../base/time.ts";
import type { ScrapeCounts } from "../../wire/tracker/announce.ts";
import { reachOf } from "./visibility.ts";

/** Peers of all swarms: 25 to 40 MB (docs/design/tracker.md). */
const MAX_PEERS = 100_000;
/** Peers of one household in one swarm: a family, or customers of a small provider that share an address. A further
 * peer replaces the oldest one. */
const MAX_HOUSEHOLD_PEERS = 16;
/** The same for local addresses: a machine may run many peers for a test, and remote clients cannot have such addresses. */
const MAX_LOCAL_PEERS = 128;
/** Peers of one household in all swarms: it takes a hundred households to fill the table. */
const MAX_HOUSEHOLD_ENTRIES = 1000;
/** Bytes of an IPv6 address and a port. */
const ENDPOINT_BYTES = 18;
const FIRST_CAPACITY = 256;
/** Peers examined per returned peer, because the client may not see all of them. */
const EXAMINED_PER_PEER = 4;

interface TableSwarm {
  readonly infohash: Infohash;
  /** The slots of its peers, in no order. */
  readonly slots: number[];
  seeders: number;
  completed: number;
}

/** The position of a peer in the table. */
interface Entry {
  readonly slot: number;
  readonly key: string;
}

/**
 * The peers of all swarms, stored compactly, limited in number, and expired after a while. A peer is an infohash, an
 * address and a port. If the table is full, the peer that announced least recently is dropped.
 */
export class PeerTable {
  readonly #lifeMs: number;
  readonly #maxPeers: number;
  readonly #swarms = new Map<Infohash, TableSwarm>();
  /** Slots by infohash, household and index in the household, least recently announced first. */
  readonly #slots = new Map<string, number>();
  readonly #households = new Map<string, number>();
  readonly #free: number[] = [];
  #used = 0;
  #endpoints = new Uint8Array(FIRST_CAPACITY * ENDPOINT_BYTES);
  #seenAt = new Float64Array(FIRST_CAPACITY);
  #ranks = new Uint32Array(FIRST_CAPACITY);
  #areSeeds = new Uint8Array(FIRST_CAPACITY);
  readonly #swarmOf: (TableSwarm | undefined)[] = [];

  constructor(lifeMs: number, maxPeers = MAX_PEERS) {
    this.#lifeMs = lifeMs;
    this.#maxPeers = maxPeers;
  }

  /** Number of peers. */
  get size(): number {
    return this.#slots.size;
  }

  /** Adds or refreshes a peer; returns false if its household has too many. */
  add(infohash: Infohash, peer: PeerAddress, isSeed: boolean, now: Instant): boolean {
    this.expire(now);
    const known = this.#find(infohash, peer);
    const household = householdOf(peer.host);
    if (known) {
      // Moves it to the end of the announce order.
      this.#slots.delete(known.key);
      this.#slots.set(known.key, known.slot);
      this.#setSeed(known.slot, isSeed);
      this.#seenAt[known.slot] = now;
      return true;
    }
    if ((this.#households.get(household) ?? 0) >= MAX_HOUSEHOLD_ENTRIES) return false;
    const key = this.#freeKey(infohash, peer);
    if (this.size >= this.#maxPeers) this.#dropOldest();
    const swarm = this.#swarmFor(infohash);
    const slot = this.#free.pop() ?? this.#newSlot();
    writeEndpoint(this.#endpoints, slot * ENDPOINT_BYTES, peer);
    this.#seenAt[slot] = now;
    this.#ranks[slot] = swarm.slots.push(slot) - 1;
    this.#areSeeds[slot] = isSeed ? 1 : 0;
    if (isSeed) swarm.seeders++;
    this.#swarmOf[slot] = swarm;
    this.#slots.set(key, slot);
    this.#households.set(household, (this.#households.get(household) ?? 0) + 1);
    return true;
  }

  /** Whether the table has this peer as a seed. */
  isSeed(infohash: Infohash, peer: PeerAddress): boolean {
    const known = this.#find(infohash, peer);
    return known !== undefined && this.#areSeeds[known.slot] === 1;
  }

  /** A peer of the swarm has completed the content. */
  completed(infohash: Infohash): void {
    const swarm = this.#swarms.get(infohash);
    if (swarm) swarm.completed++;
  }

  /** Removes a peer. */
  remove(infohash: Infohash, peer: PeerAddress): void {
    const known = this.#find(infohash, peer);
    if (known) this.#drop(known);
  }

  counts(infohash: Infohash): ScrapeCounts {
    const swarm = this.#swarms.get(infohash);
    if (!swarm) return { seeders: 0, leechers: 0, completed: 0 };
    const { slots, seeders, completed } = swarm;
    return { seeders, leechers: slots.length - seeders, completed };
  }

  /** Returns up to `count` random peers of a swarm for which `fits` returns true, each once. */
  sample(
    infohash: Infohash,
    count: number,
    fits: (peer: PeerAddress) => boolean,
    random: Random,
  ): PeerAddress[] {
    const slots = this.#swarms.get(infohash)?.slots ?? [];
    const examined = Math.min(slots.length, EXAMINED_PER_PEER * count);
    // Starts at a random slot and advances by a random step without a common factor, so that no slot repeats.
    const step = coprime(1 + randomBelow(random, slots.length), slots.length);
    let at = randomBelow(random, slots.length);
    const peers: PeerAddress[] = [];
    for (let i = 0; i < examined && peers.length < count; i++) {
      const peer = readEndpoint(this.#endpoints, slots[at]! * ENDPOINT_BYTES);
      if (fits(peer)) peers.push(peer);
      at = (at + step) % slots.length;
    }
    return peers;
  }

  /** Drops peers that have not announced for too long. */
  expire(now: Instant): void {
    for (const [key, slot] of this.#slots) {
      if (this.#seenAt[slot]! + this.#lifeMs > now) return;
      this.#drop({ key, slot });
    }
  }

  #find(infohash: Infohash, peer: PeerAddress): Entry | undefined {
    const prefix = keyPrefix(infohash, peer.host);
    const endpoint = new Uint8Array(ENDPOINT_BYTES);
    writeEndpoint(endpoint, 0, peer);
    for (let index = 0; index < maxPeersOf(peer.host); index++) {
      const key = prefix + String.fromCharCode(index);
      const slot = this.#slots.get(key);
      if (slot !== undefined && this.#isAt(slot, endpoint)) return { key, slot };
    }
    return undefined;
  }

  /** Returns a free key of the household; drops its oldest peer if there is none. */
  #freeKey(infohash: Infohash, { host }: PeerAddress): string {
    const prefix = keyPrefix(infohash, host);
    let oldest: Entry | undefined;
    for (let index = 0; index < maxPeersOf(host); index++) {
      const key = prefix + String.fromCharCode(index);
      const slot = this.#slots.get(key);
      if (slot === undefined) return key;
      if (!oldest || this.#seenAt[slot]! < this.#seenAt[oldest.slot]!) oldest = { key, slot };
    }
    assert(oldest, "a household has at least one index");
    this.#drop(oldest);
    return oldest.key;
  }

  #swarmFor(infohash: Infohash): TableSwarm {
    const known = this.#swarms.get(infohash);
    if (known) return known;
    const swarm = { infohash, slots: [], seeders: 0, completed: 0 };
    this.#swarms.set(infohash, swarm);
    return swarm;
  }

  #newSlot(): number {
    if (this.#used === this.#seenAt.length) {
      const capacity = 2 * this.#used;
      this.#endpoints = grown(this.#endpoints, new Uint8Array(capacity * ENDPOINT_BYTES));
      this.#seenAt = grown(this.#seenAt, new Float64Array(capacity));
      this.#ranks = grown(this.#ranks, new Uint32Array(capacity));
      this.#areSeeds = grown(this.#areSeeds, new Uint8Array(capacity));
    }
    return this.#used++;
  }

  #setSeed(slot: number, isSeed: boolean): void {
    const swarm = this.#swarmOf[slot]!;
    swarm.seeders += (isSeed ? 1 : 0) - this.#areSeeds[slot]!;
    this.#areSeeds[slot] = isSeed ? 1 : 0;
  }

  #dropOldest(): void {
    for (const [key, slot] of this.#slots) {
      this.#drop({ key, slot });
      return;
    }
  }

  #drop({ key, slot }: Entry): void {
    const swarm = this.#swarmOf[slot]!;
    const { slots } = swarm;
    const last = slots.pop()!;
    if (last !== slot) {
      slots[this.#ranks[slot]!] = last;
      this.#ranks[last] = this.#ranks[slot]!;
    }
    swarm.seeders -= this.#areSeeds[slot]!;
    if (slots.length === 0) this.#swarms.delete(swarm.infohash);
    const household = householdOf(readEndpoint(this.#endpoints, slot * ENDPOINT_BYTES).host);
    const count = this.#households.get(household)! - 1;
    if (count === 0) this.#households.delete(household);
    else this.#households.set(household, count);
    this.#slots.delete(key);
    this.#swarmOf[slot] = undefined;
    this.#free.push(slot);
  }

  #isAt(slot: number, endpoint: Uint8Array): boolean {
    const at = slot * ENDPOINT_BYTES;
    for (let i = 0; i < ENDPOINT_BYTES; i++) if (this.#endpoints[at + i] !== endpoint[i]) return false;
    return true;
  }
}

function maxPeersOf(host: string): number {
  return reachOf(host) === "internet" ? MAX_HOUSEHOLD_PEERS : MAX_LOCAL_PEERS;
}

/** The infohash and the first eight bytes of the address, one character per byte: the shortest possible string. */
function keyPrefix(infohash: Infohash, host: string): string {
  return latin1Text(infohashBytes(infohash)) + latin1Text(addressBytes(host)!.subarray(0, 8));
}

/** Writes an IPv4 address in its mapped form (RFC 4291 2.5.5.2), so that all endpoints have the same length. */
function writeEndpoint(into: Uint8Array, at: number, { host, port }: PeerAddress): void {
  const bytes = addressBytes(host);
  assert(bytes, `not a canonical address: ${host}`);
  into.fill(0, at, at + 16);
  if (bytes.length === 4) into.fill(0xff, at + 10, at + 12);
  into.set(bytes, at + 16 - bytes.length);
  writeU16(into, at + 16, port);
}

function readEndpoint(from: Uint8Array, at: number): PeerAddress {
  return { host: addressFromBytes(from.subarray(at, at + 16)), port: readU16(from, at + 16) };
}

function grown<T extends Uint8Array | Float64Array | Uint32Array>(old: T, into: T): T {
  into.set(old);
  return into;
}

/** Returns `step`, or the next number without a common factor with `count`. */
function coprime(step: number, count: number): number {
  let tried = Math.max(1, step);
  while (greatestFactor(tried, count) > 1) tried++;
  return tried;
}

function greatestFactor(a: number, b: number): number {
  return b === 0 ? a : greatestFactor(b, a % b);
}
