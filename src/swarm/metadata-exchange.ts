import { concatBytes, equalBytes } from "../base/bytes.ts";
import { type Infohash, infohashBytes, type Sha1 } from "../base/ids.ts";
import { after, earliest, type Instant } from "../base/time.ts";
import { METADATA_PIECE_BYTES, type MetadataMessage } from "../wire/metadata-message.ts";
import type { ConnectionId } from "./contract.ts";
import { MAX_METADATA_BYTES } from "./limits.ts";

/** What the exchange asks of the swarm. */
export type MetadataExchangeOutput =
  | { readonly kind: "send"; readonly connection: ConnectionId; readonly message: MetadataMessage }
  /** The metadata, whose SHA-1 is the infohash. */
  | { readonly kind: "complete"; readonly infoBytes: Uint8Array<ArrayBuffer> }
  /** This peer is proven to have sent wrong metadata: ban it. */
  | { readonly kind: "liar"; readonly connection: ConnectionId; readonly reason: string };

/** Pieces asked of one peer at once: 256 KiB, the whole metadata of most content in one round trip. */
const MAX_ASKED = 16;
/** Askers of one piece at once. Metadata is small and the player waits for it, so that doubles are cheap. */
const MAX_ASKERS = 3;
/** A piece that has not come by then is asked elsewhere, and the peer is not counted on. */
const LATE_MS = 2_000;
/** So often a peer may let us wait in a row, or reject, before it gets a rest. */
const MAX_MISSES = 4;
const REST_MS = 30_000;
/** Different sizes tried side by side, and their bytes in all: a lie about the size costs nobody else. */
const MAX_ATTEMPTS = 4;
const MAX_ATTEMPT_BYTES = 2 * MAX_METADATA_BYTES;
/** Requests we answer one peer: the whole twice, and some. More is a flood. */
const ANSWERS_EACH = 2;
const SPARE_ANSWERS = 8;

interface Peer {
  readonly connection: ConnectionId;
  size: number;
  /** Piece → when we asked. */
  readonly asked: Map<number, Instant>;
  misses: number;
  restUntil: Instant | undefined;
  answered: number;
  isLiar: boolean;
}

/** One size that peers claim, and what has come for it. */
interface Attempt {
  readonly size: number;
  readonly pieces: (Uint8Array<ArrayBuffer> | undefined)[];
  readonly senders: (ConnectionId | undefined)[];
  /** How many peers each piece is asked of at present. */
  readonly askers: Uint8Array;
  missing: number;
  /** After a mixed attempt failed: only this peer is asked, so that blame is certain. */
  lone: ConnectionId | undefined;
  isLone: boolean;
  /** What came in failed attempts, to find the liars once the right metadata is known. */
  readonly failed: {
    readonly bytes: Uint8Array<ArrayBuffer>;
    readonly senders: (ConnectionId | undefined)[];
  }[];
}

/**
 * Metadata from and for peers (BEP 9). Fetches from several peers at once, the same piece from up to three of them;
 * checks the SHA-1; when it fails asks one peer at a time, bans the liars, and only them. Serves what it has.
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

  /** The metadata, once known; its length is what we claim as `metadata_size`. */
  get infoBytes(): Uint8Array | undefined {
    return this.#infoBytes;
  }

  /** The metadata came from elsewhere: where it fits the infohash no peer is asked any more. */
  learn(infoBytes: Uint8Array): void {
    if (this.#infoBytes || !equalBytes(this.#sha1(infoBytes), infohashBytes(this.#infohash))) return;
    this.#complete(infoBytes.slice());
  }

  /** A peer that speaks `ut_metadata` said hello; `size` is its `metadata_size`, where it has one. */
  joined(connection: ConnectionId, size: number | undefined, now: Instant): void {
    const isSane = size !== undefined && Number.isInteger(size) && size > 0 && size <= MAX_METADATA_BYTES;
    const known = this.#peers.get(connection);
    if (known) {
      if (isSane && known.size !== size) {
        this.#forgetAsked(known);
        known.size = size;
      }
    } else {
      this.#peers.set(connection, {
        connection,
        size: isSane ? size : 0,
        asked: new Map(),
        misses: 0,
        restUntil: undefined,
        answered: 0,
        isLiar: false,
      });
    }
    this.#ask(now);
  }

  /** The connection is over. */
  left(connection: ConnectionId, now: Instant): void {
    const peer = this.#peers.get(connection);
    if (!peer) return;
    this.#forgetAsked(peer);
    this.#peers.delete(connection);
    for (const attempt of this.#attempts.values()) {
      if (attempt.lone === connection) this.#restart(attempt);
    }
    this.#ask(now);
  }

  /** Takes a message. Its bytes are copied: the view need not outlive the call. */
  received(connection: ConnectionId, message: MetadataMessage, now: Instant): void {
    const peer = this.#peers.get(connection);
    if (message.kind === "request") this.#answer(connection, peer, message.piece);
    else if (peer && message.kind === "reject") this.#rejected(peer, message.piece, now);
    else if (peer && message.kind === "data") this.#data(peer, message, now);
  }

  /** Asks elsewhere for what is late. */
  wake(now: Instant): void {
    if (this.#infoBytes) return;
    for (const peer of this.#peers.values()) {
      for (const [piece, at] of peer.asked) {
        if (now < after(at, LATE_MS)) continue;
        this.#unask(peer, piece);
        this.#missed(peer, now);
      }
      if (peer.restUntil !== undefined && now >= peer.restUntil) {
        peer.restUntil = undefined;
        peer.misses = 0;
      }
    }
    this.#ask(now);
  }

  /** The next output, or undefined when there is none for now. */
  poll(): MetadataExchangeOutput | undefined {
    return this.#outputs.shift();
  }

  /** When `wake` wants to be called next; undefined: never. */
  nextWake(): Instant | undefined {
    if (this.#infoBytes) return undefined;
    let next: Instant | undefined;
    for (const peer of this.#peers.values()) {
      for (const at of peer.asked.values()) next = earliest(next, after(at, LATE_MS));
      next = earliest(next, peer.restUntil);
    }
    return next;
  }

  #answer(connection: ConnectionId, peer: Peer | undefined, piece: number): void {
    const bytes = this.#infoBytes;
    const count = bytes ? Math.ceil(bytes.length / METADATA_PIECE_BYTES) : 0;
    const isFlood = peer !== undefined && peer.answered >= ANSWERS_EACH * count + SPARE_ANSWERS;
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
    if (!this.#unask(peer, piece)) return;
    peer.misses = MAX_MISSES;
    this.#missed(peer, now);
    this.#ask(now);
  }

  #missed(peer: Peer, now: Instant): void {
    const attempt = this.#attempts.get(peer.size);
    const isLone = attempt?.lone === peer.connection;
    // Alone it holds everybody up: the next one's turn at once.
    if (++peer.misses <= MAX_MISSES && !isLone) return;
    peer.restUntil = after(now, REST_MS);
    this.#forgetAsked(peer);
    if (attempt && isLone) this.#restart(attempt);
  }

  #data(peer: Peer, message: MetadataMessage & { kind: "data" }, now: Instant): void {
    const wasAsked = this.#unask(peer, message.piece);
    const attempt = this.#attempts.get(peer.size);
    if (this.#infoBytes || !attempt || !wasAsked || (attempt.isLone && attempt.lone !== peer.connection))
      return;
    const { piece, bytes, totalBytes } = message;
    if (totalBytes !== attempt.size || bytes.length !== pieceLength(attempt.size, piece)) {
      this.#accuse(peer, "metadata of another size than it claimed");
      this.#ask(now);
      return;
    }
    peer.misses = 0;
    if (attempt.pieces[piece] === undefined) {
      attempt.pieces[piece] = bytes.slice();
      attempt.senders[piece] = peer.connection;
      attempt.missing--;
    }
    if (attempt.missing === 0) this.#check(attempt);
    this.#ask(now);
  }

  #check(attempt: Attempt): void {
    const bytes = concatBytes(attempt.pieces as Uint8Array[]);
    if (equalBytes(this.#sha1(bytes), infohashBytes(this.#infohash))) {
      this.#complete(bytes);
      return;
    }
    const senders = new Set(attempt.senders);
    const [first] = senders;
    const lone = senders.size === 1 && first !== undefined ? this.#peers.get(first) : undefined;
    if (lone) this.#accuse(lone, "metadata that does not fit the infohash");
    if (senders.size > 1 && attempt.failed.length < 2)
      attempt.failed.push({ bytes, senders: [...attempt.senders] });
    attempt.isLone = true;
    this.#restart(attempt);
  }

  #complete(infoBytes: Uint8Array<ArrayBuffer>): void {
    this.#infoBytes = infoBytes;
    for (const attempt of this.#attempts.values()) {
      for (const { bytes, senders } of attempt.failed) this.#accuseByBytes(bytes, senders, infoBytes);
    }
    this.#attempts.clear();
    for (const peer of this.#peers.values()) peer.asked.clear();
    this.#outputs.push({ kind: "complete", infoBytes });
  }

  #accuseByBytes(bytes: Uint8Array, senders: (ConnectionId | undefined)[], truth: Uint8Array): void {
    for (const [i, sender] of senders.entries()) {
      const [from, to] = [i * METADATA_PIECE_BYTES, (i + 1) * METADATA_PIECE_BYTES];
      const peer = sender === undefined ? undefined : this.#peers.get(sender);
      if (!peer || equalBytes(bytes.subarray(from, to), truth.subarray(from, to))) continue;
      this.#accuse(peer, "metadata that does not fit the infohash");
    }
  }

  #accuse(peer: Peer, reason: string): void {
    if (peer.isLiar) return;
    peer.isLiar = true;
    this.#forgetAsked(peer);
    this.#outputs.push({ kind: "liar", connection: peer.connection, reason });
    for (const attempt of this.#attempts.values())
      if (attempt.lone === peer.connection) this.#restart(attempt);
  }

  #restart(attempt: Attempt): void {
    attempt.pieces.fill(undefined);
    attempt.senders.fill(undefined);
    attempt.missing = attempt.pieces.length;
    attempt.lone = undefined;
    for (const peer of this.#peers.values()) if (peer.size === attempt.size) this.#forgetAsked(peer);
  }

  #unask(peer: Peer, piece: number): boolean {
    if (!peer.asked.delete(piece)) return false;
    const attempt = this.#attempts.get(peer.size);
    if (attempt) attempt.askers[piece]!--;
    return true;
  }

  #forgetAsked(peer: Peer): void {
    for (const piece of peer.asked.keys()) this.#unask(peer, piece);
  }

  /** Asks for whatever is missing, of whoever has room. */
  #ask(now: Instant): void {
    if (this.#infoBytes) return;
    for (const peer of this.#peers.values()) {
      if (!isAble(peer)) continue;
      const attempt = this.#attempts.get(peer.size) ?? this.#begin(peer.size);
      if (!attempt) continue;
      if (attempt.isLone) attempt.lone ??= peer.connection;
      if (attempt.isLone && attempt.lone !== peer.connection) continue;
      this.#askPeer(peer, attempt, now);
    }
  }

  #askPeer(peer: Peer, attempt: Attempt, now: Instant): void {
    const count = attempt.pieces.length;
    for (let askers = 0; askers < MAX_ASKERS; askers++) {
      // Doubles from the other end: what the first peer sends last is what a second one is of use for.
      for (let i = 0; i < count; i++) {
        const piece = askers % 2 === 0 ? i : count - 1 - i;
        if (peer.asked.size >= MAX_ASKED) return;
        if (attempt.pieces[piece] || peer.asked.has(piece) || attempt.askers[piece] !== askers) continue;
        peer.asked.set(piece, now);
        attempt.askers[piece] = askers + 1;
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
      askers: new Uint8Array(count),
      missing: count,
      lone: undefined,
      isLone: false,
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

  /** Sizes that nobody able claims make room for others. */
  #dropIdle(): void {
    for (const size of this.#attempts.keys()) {
      const isWanted = [...this.#peers.values()].some((peer) => peer.size === size && isAble(peer));
      if (!isWanted) this.#attempts.delete(size);
    }
  }
}

function isAble(peer: Peer): boolean {
  return peer.size > 0 && !peer.isLiar && peer.restUntil === undefined;
}

function pieceLength(size: number, piece: number): number {
  return Math.max(0, Math.min(METADATA_PIECE_BYTES, size - piece * METADATA_PIECE_BYTES));
}
