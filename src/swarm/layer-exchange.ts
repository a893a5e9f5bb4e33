import { assert } from "../base/assert.ts";
import { DIGEST_BYTES, type Merkle } from "../base/merkle.ts";
import { after, earliest, type Instant } from "../base/time.ts";
import type { HashRange } from "../wire/hash-message.ts";
import type { ConnectionId, SwarmLayout } from "./contract.ts";
import { isProven, isSameRange, type LayerRange, layerRanges } from "./layer-ranges.ts";

/** What the exchange asks of the swarm. */
export type LayerExchangeOutput =
  | { readonly kind: "ask"; readonly connection: ConnectionId; readonly range: HashRange }
  /** This peer sent hashes that lead to another root: ban it. */
  | { readonly kind: "liar"; readonly connection: ConnectionId; readonly reason: string }
  /** All layers are there. */
  | { readonly kind: "complete" };

/** Ranges that one peer is asked for at once: content of many files takes one for each, and one at a time would cost the way
 * there and back for each. libtorrent asks for two. */
const MAX_ASKED = 4;
/** Peers that are asked for one range at once: it is 16 KiB at most, and a player waits for it. Twice as many after each that
 * was late, up to this: a crowd of silent ones that claim to have all would be asked two by two for minutes. */
const FIRST_ASKERS = 2;
const MAX_ASKERS = 64;
/** Who has not answered by then is not counted on; what it sends is welcome still. */
const LATE_MS = 3_000;
/** So often a peer may be late in a row, or reject, before it gets a rest. */
const MAX_MISSES = 4;
/** By then it may have the layers itself. */
const REST_MS = 10_000;

interface Peer {
  /** By the number of the range, when we asked; undefined where it is late. Each is answered once. */
  readonly asked: Map<number, Instant | undefined>;
  misses: number;
  /** It was late or rejected since it was last of use: others come first, even when it has rested. */
  hasMissed: boolean;
  restUntil: Instant | undefined;
}

/**
 * Asks peers for the piece layers that the metadata of version 2 leaves out (BEP 52). Each answer brings its proof up to the
 * root of its file, so that a wrong one is known at once, and whose it is. Right ones are written into the hashes of the layout.
 */
export class LayerExchange {
  readonly #hashes: Uint8Array;
  readonly #merkle: Merkle;
  readonly #ranges: readonly LayerRange[];
  /** Numbers of ranges that nobody is counted on for, and of those that somebody is. */
  readonly #open: Set<number>;
  readonly #pending = new Set<number>();
  /** By range, how many peers are counted on, and how many may be. */
  readonly #askers: Uint8Array;
  readonly #limits: Uint8Array;
  readonly #peers = new Map<ConnectionId, Peer>();
  readonly #outputs: LayerExchangeOutput[] = [];

  constructor({ layers = [], pieceLength, pieceHashes }: SwarmLayout, merkle: Merkle) {
    this.#hashes = pieceHashes;
    this.#merkle = merkle;
    this.#ranges = layers.flatMap((layer) => layerRanges(layer, pieceLength));
    this.#open = new Set(this.#ranges.keys());
    this.#askers = new Uint8Array(this.#ranges.length);
    this.#limits = new Uint8Array(this.#ranges.length).fill(FIRST_ASKERS);
    assert(this.#ranges.length > 0, "a layout that lacks layers has some");
  }

  get isComplete(): boolean {
    return this.#open.size === 0 && this.#pending.size === 0;
  }

  /** The layers came from elsewhere: nobody is asked any more. */
  stop(): void {
    this.#open.clear();
    this.#pending.clear();
  }

  /** Asks whoever may be asked, the most promising first, but those last who were asked in vain. */
  ask(peers: Iterable<ConnectionId>, now: Instant): void {
    if (this.isComplete) return;
    const hasMissed = (connection: ConnectionId) => (this.#peers.get(connection)?.hasMissed ? 1 : 0);
    const able = [...peers]
      .filter((connection) => this.#peers.get(connection)?.restUntil === undefined)
      .sort((a, b) => hasMissed(a) - hasMissed(b));
    for (const connection of able) this.#askFor(connection, () => this.#open, now);
    for (const connection of able) this.#askFor(connection, () => this.#doubtful(), now);
  }

  /** Takes an answer; false where this peer was not asked for it. The view need not outlive the call. */
  received(connection: ConnectionId, range: HashRange, hashes: Uint8Array): boolean {
    const number = this.#answered(connection, range);
    if (number === undefined) return false;
    const asked = this.#ranges[number]!;
    if (!isProven(asked, hashes, this.#merkle)) {
      const reason = "hashes of pieces that do not fit the root of their file";
      this.#outputs.push({ kind: "liar", connection, reason });
      return true;
    }
    const peer = this.#peers.get(connection)!;
    peer.misses = 0;
    peer.hasMissed = false;
    // Late, and right: who is slow is asked on.
    peer.restUntil = undefined;
    const isNew = this.#open.delete(number) || this.#pending.delete(number);
    if (!isNew) return true;
    const { firstPiece, pieceCount } = asked;
    this.#hashes.set(hashes.subarray(0, pieceCount * DIGEST_BYTES), firstPiece * DIGEST_BYTES);
    if (this.isComplete) this.#outputs.push({ kind: "complete" });
    return true;
  }

  /** The peer does not have it; false where it was not asked. */
  rejected(connection: ConnectionId, range: HashRange, now: Instant): boolean {
    if (this.#answered(connection, range) === undefined) return false;
    this.#missed(this.#peers.get(connection)!, now);
    return true;
  }

  /** The connection is over. */
  left(connection: ConnectionId): void {
    for (const [number, at] of this.#peers.get(connection)?.asked ?? [])
      if (at !== undefined) this.#release(number);
    this.#peers.delete(connection);
  }

  /** Counts no longer on who is late, and again on who has rested. */
  wake(now: Instant): void {
    for (const peer of this.#peers.values()) {
      if (peer.restUntil !== undefined && now >= peer.restUntil) {
        peer.restUntil = undefined;
        peer.misses = 0;
      }
      for (const [number, at] of peer.asked) {
        if (at === undefined || now < after(at, LATE_MS)) continue;
        peer.asked.set(number, undefined);
        this.#limits[number] = Math.min(MAX_ASKERS, 2 * this.#limits[number]!);
        this.#release(number);
        this.#missed(peer, now);
      }
    }
  }

  /** The next output, or undefined when there is none for now. */
  poll(): LayerExchangeOutput | undefined {
    return this.#outputs.shift();
  }

  /** When `wake` wants to be called next; undefined: never. */
  nextWake(): Instant | undefined {
    if (this.isComplete) return undefined;
    let next: Instant | undefined;
    for (const { asked, restUntil } of this.#peers.values()) {
      next = earliest(next, restUntil);
      for (const at of asked.values()) if (at !== undefined) next = earliest(next, after(at, LATE_MS));
    }
    return next;
  }

  /** Ranges that one more peer may be asked for, to be on the safe side. */
  *#doubtful(): Generator<number, void, undefined> {
    for (const number of this.#pending) if (this.#askers[number]! < this.#limits[number]!) yield number;
  }

  #askFor(connection: ConnectionId, numbers: () => Iterable<number>, now: Instant): void {
    const peer = this.#peers.get(connection) ?? {
      asked: new Map(),
      misses: 0,
      hasMissed: false,
      restUntil: undefined,
    };
    this.#peers.set(connection, peer);
    while (peer.asked.size < MAX_ASKED) {
      const number = firstBut(numbers(), peer.asked);
      if (number === undefined) return;
      this.#open.delete(number);
      this.#pending.add(number);
      this.#askers[number]!++;
      peer.asked.set(number, now);
      this.#outputs.push({ kind: "ask", connection, range: this.#ranges[number]! });
    }
  }

  /** The number of the range that a peer answers; undefined where it was not asked for it. */
  #answered(connection: ConnectionId, range: HashRange): number | undefined {
    const asked = this.#peers.get(connection)?.asked;
    for (const [number, at] of asked ?? []) {
      if (!isSameRange(this.#ranges[number]!, range)) continue;
      asked!.delete(number);
      if (at !== undefined) this.#release(number);
      return number;
    }
    return undefined;
  }

  /** One peer less is counted on. */
  #release(number: number): void {
    this.#askers[number]!--;
    if (this.#askers[number]! === 0 && this.#pending.delete(number)) this.#open.add(number);
  }

  #missed(peer: Peer, now: Instant): void {
    peer.hasMissed = true;
    if (++peer.misses >= MAX_MISSES) peer.restUntil = after(now, REST_MS);
  }
}

function firstBut(numbers: Iterable<number>, known: ReadonlyMap<number, unknown>): number | undefined {
  for (const number of numbers) if (!known.has(number)) return number;
  return undefined;
}
