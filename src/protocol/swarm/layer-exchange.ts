import { assert } from "../../base/assert.ts";
import { DIGEST_BYTES, type Merkle } from "../../base/merkle.ts";
import { after, earliest, type Instant } from "../../base/time.ts";
import type { HashRange } from "../../wire/peer/hash-message.ts";
import type { ConnectionId, SwarmLayout } from "./contract.ts";
import { isProven, isSameRange, type LayerRange, layerRanges } from "./layer-ranges.ts";

/** Requests of the exchange to the swarm. */
type LayerExchangeOutput =
  | { readonly kind: "request"; readonly connection: ConnectionId; readonly range: HashRange }
  /** This peer sent hashes that do not lead to the root of the file. */
  | { readonly kind: "ban"; readonly connection: ConnectionId; readonly reason: string }
  /** All layers are known. */
  | { readonly kind: "complete" };

/** Ranges requested from one peer at once: content of many files has at least one range a file, and one request at a time
 * would cost a round trip each. libtorrent uses two. */
const MAX_REQUESTED = 4;
/** Peers that one range is requested from at once: an answer is at most 16 KiB, and a player waits for it. The limit doubles
 * each time a peer is late; otherwise many silent peers that claim to be seeds would be tried two by two for minutes. */
const FIRST_REQUESTERS = 2;
const MAX_REQUESTERS = 64;
/** A request is late after this time; its answer is still accepted. */
const LATE_MS = 3_000;
/** Consecutive late or rejected requests before a peer is paused. */
const MAX_MISSES = 4;
/** A paused peer may have fetched the layers itself by then. */
const PAUSE_MS = 10_000;

interface Peer {
  /** By range number: when it was requested; undefined once it is late. Each request is answered once. */
  readonly requested: Map<number, Instant | undefined>;
  misses: number;
  /** The peer was late or rejected a request since its last valid answer: other peers are asked first. */
  hasMissed: boolean;
  pausedUntil: Instant | undefined;
}

/**
 * Fetches the piece layers that version 2 metadata does not contain (BEP 52). Each answer includes its proof up to the root of
 * its file, so an invalid answer is detected at once. Valid hashes are written into the hashes of the layout.
 */
export class LayerExchange {
  readonly #hashes: Uint8Array;
  readonly #merkle: Merkle;
  readonly #ranges: readonly LayerRange[];
  /** Numbers of ranges without a pending request, and of those with one. */
  readonly #open: Set<number>;
  readonly #pending = new Set<number>();
  /** By range: the number of pending requests, and its limit. */
  readonly #requesters: Uint8Array;
  readonly #limits: Uint8Array;
  readonly #peers = new Map<ConnectionId, Peer>();
  readonly #outputs: LayerExchangeOutput[] = [];

  constructor({ layers = [], pieceLength, pieceHashes }: SwarmLayout, merkle: Merkle) {
    this.#hashes = pieceHashes;
    this.#merkle = merkle;
    this.#ranges = layers.flatMap((layer) => layerRanges(layer, pieceLength));
    this.#open = new Set(this.#ranges.keys());
    this.#requesters = new Uint8Array(this.#ranges.length);
    this.#limits = new Uint8Array(this.#ranges.length).fill(FIRST_REQUESTERS);
    assert(this.#ranges.length > 0, "the layout has no layers to fetch");
  }

  get isComplete(): boolean {
    return this.#open.size === 0 && this.#pending.size === 0;
  }

  /** The layers came from another source: stops requesting. */
  stop(): void {
    this.#open.clear();
    this.#pending.clear();
  }

  /** Requests open ranges from `peers`, which are sorted best first; peers that missed a request come last. */
  request(peers: Iterable<ConnectionId>, now: Instant): void {
    if (this.isComplete) return;
    const hasMissed = (connection: ConnectionId) => (this.#peers.get(connection)?.hasMissed ? 1 : 0);
    const able = [...peers]
      .filter((connection) => this.#peers.get(connection)?.pausedUntil === undefined)
      .sort((a, b) => hasMissed(a) - hasMissed(b));
    for (const connection of able) this.#requestFrom(connection, () => this.#open, now);
    for (const connection of able) this.#requestFrom(connection, () => this.#belowLimit(), now);
  }

  /** Takes an answer; returns false if this peer was not asked for it. The view is valid only during the call. */
  received(connection: ConnectionId, range: HashRange, hashes: Uint8Array): boolean {
    const number = this.#answered(connection, range);
    if (number === undefined) return false;
    const requested = this.#ranges[number]!;
    if (!isProven(requested, hashes, this.#merkle)) {
      const reason = "piece hashes do not lead to the root of their file";
      this.#outputs.push({ kind: "ban", connection, reason });
      return true;
    }
    const peer = this.#peers.get(connection)!;
    peer.misses = 0;
    peer.hasMissed = false;
    // A slow peer whose answers are valid is asked again.
    peer.pausedUntil = undefined;
    const isNew = this.#open.delete(number) || this.#pending.delete(number);
    if (!isNew) return true;
    const { firstPiece, pieceCount } = requested;
    this.#hashes.set(hashes.subarray(0, pieceCount * DIGEST_BYTES), firstPiece * DIGEST_BYTES);
    if (this.isComplete) this.#outputs.push({ kind: "complete" });
    return true;
  }

  /** The peer does not have the hashes; returns false if it was not asked. */
  rejected(connection: ConnectionId, range: HashRange, now: Instant): boolean {
    if (this.#answered(connection, range) === undefined) return false;
    this.#missed(this.#peers.get(connection)!, now);
    return true;
  }

  /** The connection has ended. */
  peerLeft(connection: ConnectionId): void {
    for (const [number, at] of this.#peers.get(connection)?.requested ?? [])
      if (at !== undefined) this.#release(number);
    this.#peers.delete(connection);
  }

  /** Expires late requests, and resumes paused peers. */
  wake(now: Instant): void {
    for (const peer of this.#peers.values()) {
      if (peer.pausedUntil !== undefined && now >= peer.pausedUntil) {
        peer.pausedUntil = undefined;
        peer.misses = 0;
      }
      for (const [number, at] of peer.requested) {
        if (at === undefined || now < after(at, LATE_MS)) continue;
        peer.requested.set(number, undefined);
        this.#limits[number] = Math.min(MAX_REQUESTERS, 2 * this.#limits[number]!);
        this.#release(number);
        this.#missed(peer, now);
      }
    }
  }

  /** Returns the next output, or undefined if there is none. */
  poll(): LayerExchangeOutput | undefined {
    return this.#outputs.shift();
  }

  /** When `wake` is due; undefined: never. */
  nextWake(): Instant | undefined {
    if (this.isComplete) return undefined;
    let next: Instant | undefined;
    for (const { requested, pausedUntil } of this.#peers.values()) {
      next = earliest(next, pausedUntil);
      for (const at of requested.values()) if (at !== undefined) next = earliest(next, after(at, LATE_MS));
    }
    return next;
  }

  /** Pending ranges that may be requested from one more peer. */
  *#belowLimit(): Generator<number, void, undefined> {
    for (const number of this.#pending) if (this.#requesters[number]! < this.#limits[number]!) yield number;
  }

  #requestFrom(connection: ConnectionId, numbers: () => Iterable<number>, now: Instant): void {
    const peer = this.#peers.get(connection) ?? {
      requested: new Map(),
      misses: 0,
      hasMissed: false,
      pausedUntil: undefined,
    };
    this.#peers.set(connection, peer);
    while (peer.requested.size < MAX_REQUESTED) {
      const number = firstExcept(numbers(), peer.requested);
      if (number === undefined) return;
      this.#open.delete(number);
      this.#pending.add(number);
      this.#requesters[number]!++;
      peer.requested.set(number, now);
      this.#outputs.push({ kind: "request", connection, range: this.#ranges[number]! });
    }
  }

  /** Removes the request that a peer answers; returns its range number, or undefined if there is none. */
  #answered(connection: ConnectionId, range: HashRange): number | undefined {
    const requested = this.#peers.get(connection)?.requested;
    for (const [number, at] of requested ?? []) {
      if (!isSameRange(this.#ranges[number]!, range)) continue;
      requested!.delete(number);
      if (at !== undefined) this.#release(number);
      return number;
    }
    return undefined;
  }

  /** One request for the range is no longer pending. */
  #release(number: number): void {
    this.#requesters[number]!--;
    if (this.#requesters[number]! === 0 && this.#pending.delete(number)) this.#open.add(number);
  }

  #missed(peer: Peer, now: Instant): void {
    peer.hasMissed = true;
    if (++peer.misses >= MAX_MISSES) peer.pausedUntil = after(now, PAUSE_MS);
  }
}

function firstExcept(numbers: Iterable<number>, known: ReadonlyMap<number, unknown>): number | undefined {
  for (const number of numbers) if (!known.has(number)) return number;
  return undefined;
}
