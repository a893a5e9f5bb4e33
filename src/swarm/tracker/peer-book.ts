import { addressBytes, addressFromBytes, type PeerAddress } from "../../base/address.ts";
import { assert } from "../../base/assert.ts";
import { latin1Text, readU16, writeU16 } from "../../base/bytes.ts";
import { type Infohash, infohashBytes } from "../../base/ids.ts";
import { householdOf } from "../../base/network.ts";
import { type Random, randomBelow } from "../../base/random.ts";
import type { Instant } from "../../base/time.ts";
import type { ScrapeCounts } from "../../wire/tracker-reply.ts";
import { nearnessOf } from "./sight.ts";

/** Peers of all swarms together: 25 to 40 MB (docs/design/tracker.md). */
const MAX_PEERS = 100_000;
/** Peers of one household in one swarm: a family, or what shares an address at a small provider. Who comes later takes the
 * place of who was first. */
const MAX_HOUSEHOLD_PEERS = 16;
/** The same for addresses of home networks, where a machine may run many for a test, and nobody from outside can. */
const MAX_HOME_PEERS = 128;
/** Entries of one household in all swarms: a hundred of them fill the book, not one. */
const MAX_HOUSEHOLD_ENTRIES = 1000;
/** An address in its longest form and a port. */
const PLACE_BYTES = 18;
const FIRST_CAPACITY = 256;
/** How many are looked at for each that is told, where many may not be seen by who asks. */
const LOOKS = 4;

interface BookSwarm {
  readonly infohash: Infohash;
  /** Where its peers are in the book, in no order. */
  readonly slots: number[];
  seeders: number;
  completed: number;
}

/** What is kept of a peer beside its address. */
interface Entry {
  readonly slot: number;
  readonly key: string;
}

/**
 * Who is in which swarm: compact, bounded, and forgotten after a while. A peer is an address, a port and an infohash. Where
 * the book is full, who was silent for longest goes.
 */
export class PeerBook {
  readonly #lifeMs: number;
  readonly #maxPeers: number;
  readonly #swarms = new Map<Infohash, BookSwarm>();
  /** Slots by infohash, household and the peer's place in it; in the order of their last announces. */
  readonly #slots = new Map<string, number>();
  readonly #households = new Map<string, number>();
  readonly #free: number[] = [];
  #used = 0;
  #places = new Uint8Array(FIRST_CAPACITY * PLACE_BYTES);
  #seenAt = new Float64Array(FIRST_CAPACITY);
  #ranks = new Uint32Array(FIRST_CAPACITY);
  #areSeeds = new Uint8Array(FIRST_CAPACITY);
  readonly #swarmOf: (BookSwarm | undefined)[] = [];

  constructor(lifeMs: number, maxPeers = MAX_PEERS) {
    this.#lifeMs = lifeMs;
    this.#maxPeers = maxPeers;
  }

  /** Peers in the book. */
  get size(): number {
    return this.#slots.size;
  }

  /** Notes a peer, or that it is still there; false where its household has too many entries. */
  note(infohash: Infohash, peer: PeerAddress, isSeed: boolean, now: Instant): boolean {
    this.expire(now);
    const known = this.#find(infohash, peer);
    const household = householdOf(peer.host);
    if (known) {
      // Last in the order of announces from now on.
      this.#slots.delete(known.key);
      this.#slots.set(known.key, known.slot);
      this.#setSeed(known.slot, isSeed);
      this.#seenAt[known.slot] = now;
      return true;
    }
    if ((this.#households.get(household) ?? 0) >= MAX_HOUSEHOLD_ENTRIES) return false;
    const key = this.#roomFor(infohash, peer);
    if (this.size >= this.#maxPeers) this.#dropOldest();
    const swarm = this.#swarmFor(infohash);
    const slot = this.#free.pop() ?? this.#newSlot();
    writePlace(this.#places, slot * PLACE_BYTES, peer);
    this.#seenAt[slot] = now;
    this.#ranks[slot] = swarm.slots.push(slot) - 1;
    this.#areSeeds[slot] = isSeed ? 1 : 0;
    if (isSeed) swarm.seeders++;
    this.#swarmOf[slot] = swarm;
    this.#slots.set(key, slot);
    this.#households.set(household, (this.#households.get(household) ?? 0) + 1);
    return true;
  }

  /** Whether a peer is in the book, and has everything. */
  isSeed(infohash: Infohash, peer: PeerAddress): boolean {
    const known = this.#find(infohash, peer);
    return known !== undefined && this.#areSeeds[known.slot] === 1;
  }

  /** A peer of the book has got the last piece. */
  completed(infohash: Infohash): void {
    const swarm = this.#swarms.get(infohash);
    if (swarm) swarm.completed++;
  }

  /** A peer says goodbye. */
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

  /** Up to `count` peers of a swarm that `fits`, by chance, each once. */
  some(
    infohash: Infohash,
    count: number,
    fits: (peer: PeerAddress) => boolean,
    random: Random,
  ): PeerAddress[] {
    const slots = this.#swarms.get(infohash)?.slots ?? [];
    const looks = Math.min(slots.length, LOOKS * count);
    // Of a long list a stretch that begins anywhere and jumps: each is met once, since the step shares no factor.
    const step = coprime(1 + randomBelow(random, slots.length), slots.length);
    let at = randomBelow(random, slots.length);
    const peers: PeerAddress[] = [];
    for (let looked = 0; looked < looks && peers.length < count; looked++) {
      const peer = readPlace(this.#places, slots[at]! * PLACE_BYTES);
      if (fits(peer)) peers.push(peer);
      at = (at + step) % slots.length;
    }
    return peers;
  }

  /** Forgets who has not announced for too long. */
  expire(now: Instant): void {
    for (const [key, slot] of this.#slots) {
      if (this.#seenAt[slot]! + this.#lifeMs > now) return;
      this.#drop({ key, slot });
    }
  }

  #find(infohash: Infohash, peer: PeerAddress): Entry | undefined {
    const prefix = keyPrefix(infohash, peer.host);
    const place = new Uint8Array(PLACE_BYTES);
    writePlace(place, 0, peer);
    for (let room = 0; room < roomsOf(peer.host); room++) {
      const key = prefix + String.fromCharCode(room);
      const slot = this.#slots.get(key);
      if (slot !== undefined && this.#isAt(slot, place)) return { key, slot };
    }
    return undefined;
  }

  /** The key of a place that is free in its household, made free where there is none. */
  #roomFor(infohash: Infohash, { host }: PeerAddress): string {
    const prefix = keyPrefix(infohash, host);
    let oldest: Entry | undefined;
    for (let room = 0; room < roomsOf(host); room++) {
      const key = prefix + String.fromCharCode(room);
      const slot = this.#slots.get(key);
      if (slot === undefined) return key;
      if (!oldest || this.#seenAt[slot]! < this.#seenAt[oldest.slot]!) oldest = { key, slot };
    }
    assert(oldest, "a household has room for somebody");
    this.#drop(oldest);
    return oldest.key;
  }

  #swarmFor(infohash: Infohash): BookSwarm {
    const known = this.#swarms.get(infohash);
    if (known) return known;
    const swarm = { infohash, slots: [], seeders: 0, completed: 0 };
    this.#swarms.set(infohash, swarm);
    return swarm;
  }

  #newSlot(): number {
    if (this.#used === this.#seenAt.length) {
      const capacity = 2 * this.#used;
      this.#places = grown(this.#places, new Uint8Array(capacity * PLACE_BYTES));
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
    const household = householdOf(readPlace(this.#places, slot * PLACE_BYTES).host);
    const entries = this.#households.get(household)! - 1;
    if (entries === 0) this.#households.delete(household);
    else this.#households.set(household, entries);
    this.#slots.delete(key);
    this.#swarmOf[slot] = undefined;
    this.#free.push(slot);
  }

  #isAt(slot: number, place: Uint8Array): boolean {
    const at = slot * PLACE_BYTES;
    for (let i = 0; i < PLACE_BYTES; i++) if (this.#places[at + i] !== place[i]) return false;
    return true;
  }
}

function roomsOf(host: string): number {
  return nearnessOf(host) === "everywhere" ? MAX_HOUSEHOLD_PEERS : MAX_HOME_PEERS;
}

/** The infohash and the first eight bytes of the address, a character each: as short as a text can be. */
function keyPrefix(infohash: Infohash, host: string): string {
  return latin1Text(infohashBytes(infohash)) + latin1Text(addressBytes(host)!.subarray(0, 8));
}

/** An IPv4 address is written in its mapped form (RFC 4291 2.5.5.2), so that all are of one length. */
function writePlace(into: Uint8Array, at: number, { host, port }: PeerAddress): void {
  const bytes = addressBytes(host);
  assert(bytes, `a canonical address, not ${host}`);
  into.fill(0, at, at + 16);
  if (bytes.length === 4) into.fill(0xff, at + 10, at + 12);
  into.set(bytes, at + 16 - bytes.length);
  writeU16(into, at + 16, port);
}

function readPlace(from: Uint8Array, at: number): PeerAddress {
  return { host: addressFromBytes(from.subarray(at, at + 16)), port: readU16(from, at + 16) };
}

function grown<T extends Uint8Array | Float64Array | Uint32Array>(old: T, into: T): T {
  into.set(old);
  return into;
}

/** `step`, or the next number that shares no factor with `count`. */
function coprime(step: number, count: number): number {
  let tried = Math.max(1, step);
  while (greatestFactor(tried, count) > 1) tried++;
  return tried;
}

function greatestFactor(a: number, b: number): number {
  return b === 0 ? a : greatestFactor(b, a % b);
}
