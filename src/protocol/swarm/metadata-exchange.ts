import { concatBytes, equalBytes } from "../../base/bytes.ts";
import { type Infohash, infohashBytes, type Sha1 } from "../../base/ids.ts";
import { after, earliest, type Instant } from "../../base/time.ts";
import { METADATA_PIECE_BYTES, type MetadataMessage } from "../../wire/peer/metadata-message.ts";
import type { ConnectionId } from "./contract.ts";
import { MAX_METADATA_BYTES } from "./limits.ts";

/** Requests of the exchange to the swarm. */
type MetadataExchangeOutput =
  | { readonly kind: "send"; readonly connection: ConnectionId; readonly message: MetadataMessage }
  /** The metadata; its hash matches the infohash. */
  | { readonly kind: "complete"; readonly infoBytes: Uint8Array<ArrayBuffer> }
  /** This peer is proven to have sent wrong metadata. */
  | { readonly kind: "ban"; readonly connection: ConnectionId; readonly reason: string };

/** Pieces requested from one peer at once: 256 KiB, which is the whole metadata of most content. */
const MAX_REQUESTED = 16;
/** Peers that one piece is requested from at once. Metadata is small and the player waits for it, so duplicates are cheap. The
 * limit doubles each time requests are late; otherwise many silent peers would be tried three by three. */
const FIRST_REQUESTERS = 3;
const MAX_REQUESTERS = 32;
/** If a peer sends nothing for this time, its requests are late: the pieces are requested from other peers, and its answer is still
 * accepted. */
const LATE_MS = 1_000;
/** After this time a peer that was late or rejected a request may be asked for the same piece again: it may have fetched the
 * metadata itself by then. */
const PAUSE_MS = 30_000;
/** Sizes tried side by side, and their bytes in total: a wrong size from one peer does not delay the others. */
const MAX_ATTEMPTS = 4;
const MAX_ATTEMPT_BYTES = 2 * MAX_METADATA_BYTES;
/** Requests of one peer that are answered: twice the whole metadata, and a few more. */
const MAX_COPIES_PER_PEER = 2;
const SPARE_ANSWERS = 8;

interface Request {
  /** When the piece was requested, or when the peer last sent data. */
  at: Instant;
  isLate: boolean;
}

interface Peer {
  readonly connection: ConnectionId;
  size: number;
  /** By piece. */
  readonly requested: Map<number, Request>;
  /** How often its requests were late or rejected since it last sent data: peers with fewer failures are asked first. */
  failures: number;
  /** Set after a reject. */
  pausedUntil: Instant | undefined;
  answered: number;
  isBanned: boolean;
}

/** The metadata of one claimed size, as far as it has arrived. */
interface Attempt {
  readonly size: number;
  readonly pieces: (Uint8Array<ArrayBuffer> | undefined)[];
  readonly senders: (ConnectionId | undefined)[];
  /** By piece: the number of requests that are not late, and their limit. */
  readonly requesters: Uint8Array;
  maxRequesters: number;
  missing: number;
  /** After an attempt with several senders failed, only this peer is asked, so that a failure proves who is at fault. */
  onlyFrom: ConnectionId | undefined;
  isExclusive: boolean;
  /** Data of failed attempts, to identify the senders of wrong pieces once the metadata is known. */
  readonly failed: {
    readonly bytes: Uint8Array<ArrayBuffer>;
    readonly senders: (ConnectionId | undefined)[];
  }[];
}

/**
 * Metadata exchange with peers (BEP 9). Requests each piece from several peers at once. If the hash does not match, fetches from
 * one peer at a time and bans only peers proven to have sent wrong data. Serves known metadata to peers.
 */
export class MetadataExchange {
  readonly #infohash: Infohash;
  readonly #sha1: Sha1;
  readonly #peers = new Map<ConnectionId, Peer>();
  readonly #attempts = new Map<number, Attempt>();
  readonly #outputs: MetadataExchangeOutput[] = [];
  #infoBytes: Uint8Array | undefined;

  constructor(infohash: Infohash, sha1: Sha1, infoBytes?: Uint8Array) {
    this.#infohash = infohash;
    this.#sha1 = sha1;
    this.#infoBytes = infoBytes;
  }

  /** The metadata, once known. */
  get infoBytes(): Uint8Array | undefined {
    return this.#infoBytes;
  }

  /** Takes metadata from another source; ignored unless it matches the infohash. */
  supply(infoBytes: Uint8Array): void {
    if (this.#infoBytes || !equalBytes(this.#sha1(infoBytes), infohashBytes(this.#infohash))) return;
    this.#complete(infoBytes.slice());
  }

  /** A peer that supports `ut_metadata` sent its handshake; `size` is its `metadata_size`, if any. */
  joined(connection: ConnectionId, size: number | undefined, now: Instant): void {
    const isValid = size !== undefined && Number.isInteger(size) && size > 0 && size <= MAX_METADATA_BYTES;
    const known = this.#peers.get(connection);
    if (known) {
      if (!isValid || known.size === size) return;
      this.#cancelRequests(known);
      known.size = size;
    } else {
      this.#peers.set(connection, {
        connection,
        size: isValid ? size : 0,
        requested: new Map(),
        failures: 0,
        pausedUntil: undefined,
        answered: 0,
        isBanned: false,
      });
    }
    this.#requestAll(now);
  }

  /** The connection has ended. */
  peerLeft(connection: ConnectionId, now: Instant): void {
    const peer = this.#peers.get(connection);
    if (!peer) return;
    this.#cancelRequests(peer);
    this.#peers.delete(connection);
    for (const attempt of this.#attempts.values()) {
      if (attempt.onlyFrom === connection) this.#restart(attempt);
    }
    this.#requestAll(now);
  }

  /** Takes a message. The view is valid only during the call. */
  received(connection: ConnectionId, message: MetadataMessage, now: Instant): void {
    const peer = this.#peers.get(connection);
    if (message.kind === "request") this.#answer(connection, peer, message.piece);
    else if (peer && message.kind === "reject") this.#rejected(peer, message.piece, now);
    else if (peer && message.kind === "data") this.#data(peer, message, now);
  }

  /** Requests late pieces from other peers. */
  wake(now: Instant): void {
    if (this.#infoBytes) return;
    const late = new Set<Attempt>();
    for (const peer of this.#peers.values()) {
      const attempt = this.#attempts.get(peer.size);
      if (this.#expire(peer, now) && attempt) late.add(attempt);
      if (peer.pausedUntil !== undefined && now >= peer.pausedUntil) peer.pausedUntil = undefined;
    }
    for (const attempt of late) attempt.maxRequesters = Math.min(MAX_REQUESTERS, 2 * attempt.maxRequesters);
    this.#requestAll(now);
  }

  /** Returns the next output, or undefined if there is none. */
  poll(): MetadataExchangeOutput | undefined {
    return this.#outputs.shift();
  }

  /** When `wake` is due; undefined: never. */
  nextWake(): Instant | undefined {
    if (this.#infoBytes) return undefined;
    let next: Instant | undefined;
    for (const peer of this.#peers.values()) {
      for (const { at, isLate } of peer.requested.values())
        next = earliest(next, after(at, isLate ? PAUSE_MS : LATE_MS));
      next = earliest(next, peer.pausedUntil);
    }
    return next;
  }

  #answer(connection: ConnectionId, peer: Peer | undefined, piece: number): void {
    const bytes = this.#infoBytes;
    const count = bytes ? Math.ceil(bytes.length / METADATA_PIECE_BYTES) : 0;
    const isFlood = peer !== undefined && peer.answered >= MAX_COPIES_PER_PEER * count + SPARE_ANSWERS;
    if (peer) peer.answered++;
    if (!bytes || isFlood || piece < 0 || piece >= count || !Number.isInteger(piece)) {
      if (!isFlood) this.#outputs.push({ kind: "send", connection, message: { kind: "reject", piece } });
      return;
    }
    const part = bytes.subarray(piece * METADATA_PIECE_BYTES, (piece + 1) * METADATA_PIECE_BYTES);
    const message = { kind: "data", piece, totalBytes: bytes.length, bytes: part } as const;
    this.#outputs.push({ kind: "send", connection, message });
  }

  #rejected(peer: Peer, piece: number, now: Instant): void {
    if (!this.#removeRequest(peer, piece)) return;
    peer.pausedUntil = after(now, PAUSE_MS);
    this.#cancelRequests(peer);
    this.#failed(peer);
    this.#requestAll(now);
  }

  /** Marks late requests of a peer, and forgets old ones. Returns true if there are newly late ones. */
  #expire(peer: Peer, now: Instant): boolean {
    let isLate = false;
    for (const [piece, request] of peer.requested) {
      if (now >= after(request.at, PAUSE_MS)) this.#removeRequest(peer, piece);
      else if (!request.isLate && now >= after(request.at, LATE_MS)) {
        this.#release(peer, piece, request);
        isLate = true;
      }
    }
    if (isLate) this.#failed(peer);
    return isLate;
  }

  #failed(peer: Peer): void {
    peer.failures++;
    const attempt = this.#attempts.get(peer.size);
    // An exclusive peer delays all others, so it is replaced at its first failure.
    if (attempt?.onlyFrom === peer.connection) this.#restart(attempt);
  }

  #data(peer: Peer, message: MetadataMessage & { kind: "data" }, now: Instant): void {
    const wasRequested = this.#removeRequest(peer, message.piece);
    const attempt = this.#attempts.get(peer.size);
    if (this.#infoBytes || !attempt || !wasRequested) return;
    if (attempt.isExclusive && attempt.onlyFrom !== peer.connection) return;
    const { piece, bytes, totalBytes } = message;
    if (totalBytes !== attempt.size || bytes.length !== pieceLength(attempt.size, piece)) {
      this.#ban(peer, "metadata size differs from the announced size");
      this.#requestAll(now);
      return;
    }
    peer.failures = 0;
    for (const request of peer.requested.values()) request.at = now;
    if (attempt.pieces[piece] === undefined) {
      attempt.pieces[piece] = bytes.slice();
      attempt.senders[piece] = peer.connection;
      attempt.missing--;
    }
    // The message makes room for requests to this peer only.
    if (attempt.missing > 0) this.#requestPieces([peer], now);
    else {
      this.#check(attempt);
      this.#requestAll(now);
    }
  }

  #check(attempt: Attempt): void {
    const bytes = concatBytes(attempt.pieces as Uint8Array[]);
    if (equalBytes(this.#sha1(bytes), infohashBytes(this.#infohash))) {
      this.#complete(bytes);
      return;
    }
    const senders = new Set(attempt.senders);
    const [first] = senders;
    const sole = senders.size === 1 && first !== undefined ? this.#peers.get(first) : undefined;
    if (sole) this.#ban(sole, "metadata does not match the infohash");
    if (senders.size > 1 && attempt.failed.length < 2)
      attempt.failed.push({ bytes, senders: [...attempt.senders] });
    attempt.isExclusive = true;
    this.#restart(attempt);
  }

  #complete(infoBytes: Uint8Array<ArrayBuffer>): void {
    this.#infoBytes = infoBytes;
    for (const attempt of this.#attempts.values()) {
      for (const { bytes, senders } of attempt.failed) this.#banByBytes(bytes, senders, infoBytes);
    }
    this.#attempts.clear();
    for (const peer of this.#peers.values()) peer.requested.clear();
    this.#outputs.push({ kind: "complete", infoBytes });
  }

  #banByBytes(bytes: Uint8Array, senders: (ConnectionId | undefined)[], infoBytes: Uint8Array): void {
    for (const [i, sender] of senders.entries()) {
      const [from, to] = [i * METADATA_PIECE_BYTES, (i + 1) * METADATA_PIECE_BYTES];
      const peer = sender === undefined ? undefined : this.#peers.get(sender);
      if (!peer || equalBytes(bytes.subarray(from, to), infoBytes.subarray(from, to))) continue;
      this.#ban(peer, "metadata does not match the infohash");
    }
  }

  #ban(peer: Peer, reason: string): void {
    if (peer.isBanned) return;
    peer.isBanned = true;
    this.#cancelRequests(peer);
    this.#outputs.push({ kind: "ban", connection: peer.connection, reason });
    for (const attempt of this.#attempts.values())
      if (attempt.onlyFrom === peer.connection) this.#restart(attempt);
  }

  #restart(attempt: Attempt): void {
    attempt.pieces.fill(undefined);
    attempt.senders.fill(undefined);
    attempt.missing = attempt.pieces.length;
    attempt.onlyFrom = undefined;
    for (const peer of this.#peers.values()) if (peer.size === attempt.size) this.#cancelRequests(peer);
  }

  #removeRequest(peer: Peer, piece: number): boolean {
    const request = peer.requested.get(piece);
    if (!request) return false;
    this.#release(peer, piece, request);
    return peer.requested.delete(piece);
  }

  /** Makes a request late: it no longer prevents requests to other peers. */
  #release(peer: Peer, piece: number, request: Request): void {
    const attempt = this.#attempts.get(peer.size);
    if (attempt && !request.isLate) attempt.requesters[piece]!--;
    request.isLate = true;
  }

  #cancelRequests(peer: Peer): void {
    for (const piece of peer.requested.keys()) this.#removeRequest(peer, piece);
  }

  /** Requests missing pieces from all peers that may be asked, those with the fewest failures first. */
  #requestAll(now: Instant): void {
    if (this.#infoBytes) return;
    this.#requestPieces(
      [...this.#peers.values()].sort((a, b) => a.failures - b.failures),
      now,
    );
  }

  #requestPieces(peers: readonly Peer[], now: Instant): void {
    for (const peer of peers) {
      if (!isAble(peer)) continue;
      const attempt = this.#attempts.get(peer.size) ?? this.#begin(peer.size);
      if (!attempt) continue;
      if (attempt.isExclusive) attempt.onlyFrom ??= peer.connection;
      if (attempt.isExclusive && attempt.onlyFrom !== peer.connection) continue;
      this.#requestFrom(peer, attempt, now);
    }
  }

  #requestFrom(peer: Peer, attempt: Attempt, now: Instant): void {
    const count = attempt.pieces.length;
    for (let requesters = 0; requesters < attempt.maxRequesters; requesters++) {
      // A second peer starts from the other end: the first peer sends those pieces last.
      for (let i = 0; i < count; i++) {
        const piece = requesters % 2 === 0 ? i : count - 1 - i;
        if (peer.requested.size >= MAX_REQUESTED) return;
        if (attempt.pieces[piece] || peer.requested.has(piece) || attempt.requesters[piece] !== requesters)
          continue;
        peer.requested.set(piece, { at: now, isLate: false });
        attempt.requesters[piece] = requesters + 1;
        this.#outputs.push({
          kind: "send",
          connection: peer.connection,
          message: { kind: "request", piece },
        });
      }
    }
  }

  #begin(size: number): Attempt | undefined {
    if (!this.#hasRoom(size)) this.#dropIdle();
    if (!this.#hasRoom(size)) return undefined;
    const count = Math.ceil(size / METADATA_PIECE_BYTES);
    const attempt: Attempt = {
      size,
      pieces: new Array(count).fill(undefined),
      senders: new Array(count).fill(undefined),
      requesters: new Uint8Array(count),
      maxRequesters: FIRST_REQUESTERS,
      missing: count,
      onlyFrom: undefined,
      isExclusive: false,
      failed: [],
    };
    this.#attempts.set(size, attempt);
    return attempt;
  }

  #hasRoom(size: number): boolean {
    let bytes = size;
    for (const attempt of this.#attempts.values()) bytes += attempt.size;
    return this.#attempts.size < MAX_ATTEMPTS && bytes <= MAX_ATTEMPT_BYTES;
  }

  /** Drops the attempts of sizes that only failing peers claim. */
  #dropIdle(): void {
    for (const size of this.#attempts.keys()) {
      const peers = [...this.#peers.values()].filter((peer) => peer.size === size);
      if (peers.some((peer) => isAble(peer) && peer.failures === 0)) continue;
      for (const peer of peers) this.#cancelRequests(peer);
      this.#attempts.delete(size);
    }
  }
}

function isAble(peer: Peer): boolean {
  return peer.size > 0 && !peer.isBanned && peer.pausedUntil === undefined;
}

function pieceLength(size: number, piece: number): number {
  return Math.max(0, Math.min(METADATA_PIECE_BYTES, size - piece * METADATA_PIECE_BYTES));
}
