import { readU16, readU32 } from "../../base/bytes.ts";
import { DecodeError } from "../../base/errors.ts";

/** Message ids: BEP 3, BEP 5 (port), BEP 6 (fast extension), BEP 10 (extended), BEP 52 (hashes). */
export const MESSAGE = {
  choke: 0,
  unchoke: 1,
  interested: 2,
  notInterested: 3,
  have: 4,
  bitfield: 5,
  request: 6,
  piece: 7,
  cancel: 8,
  port: 9,
  suggest: 13,
  haveAll: 14,
  haveNone: 15,
  reject: 16,
  allowedFast: 17,
  extended: 20,
  hashRequest: 21,
  hashes: 22,
  hashReject: 23,
} as const;

/** Length of the header of a `piece` message: length prefix, id, piece, begin. */
export const BLOCK_HEADER_BYTES = 13;
/** Length of the longest message of fixed length: request, cancel, reject. */
const LONGEST_FIXED_BYTES = 17;
/** Limit of a hash message: 512 hashes (the most this program requests) and their proof. */
const MAX_HASH_MESSAGE_BYTES = 48 + (512 + 40) * 32;
/** Initial size of a body buffer. It doubles as bytes arrive, so that a claimed length allocates nothing. */
const INITIAL_BODY_BYTES = 4096;

/** Receives the messages of one peer. A method may throw {@link DecodeError} if the peer is at fault. */
export interface PeerMessageHandler {
  keepAlive(): void;
  choke(): void;
  unchoke(): void;
  interested(): void;
  notInterested(): void;
  have(piece: number): void;
  /** @param bits A view that is valid only during the call. */
  bitfield(bits: Uint8Array): void;
  request(piece: number, begin: number, length: number): void;
  cancel(piece: number, begin: number, length: number): void;
  port(port: number): void;
  suggest(piece: number): void;
  haveAll(): void;
  haveNone(): void;
  reject(piece: number, begin: number, length: number): void;
  allowedFast(piece: number): void;
  /** @param payload A view that is valid only during the call. */
  extended(id: number, payload: Uint8Array): void;
  /** A hash message (see `hash-message.ts`).
   * @param payload A view that is valid only during the call. */
  hash(id: number, payload: Uint8Array): void;
  /** A block begins. Returns the buffer for its payload (exactly `length` bytes), or undefined to skip the payload. */
  block(piece: number, begin: number, length: number): Uint8Array | undefined;
  /** The current block is complete; its payload is in the buffer unless it was skipped. */
  blockDone(piece: number, begin: number, length: number): void;
}

/** Returns a handler of the given messages; all others are ignored. */
export function handleOnly(handled: Partial<PeerMessageHandler>): PeerMessageHandler {
  const ignore = () => {};
  return {
    keepAlive: ignore,
    choke: ignore,
    unchoke: ignore,
    interested: ignore,
    notInterested: ignore,
    have: ignore,
    bitfield: ignore,
    request: ignore,
    cancel: ignore,
    port: ignore,
    suggest: ignore,
    haveAll: ignore,
    haveNone: ignore,
    reject: ignore,
    allowedFast: ignore,
    extended: ignore,
    hash: ignore,
    block: () => undefined,
    blockDone: ignore,
    ...handled,
  };
}

/** Maximum sizes of messages, in bytes; checked before anything is buffered. */
interface PeerMessageLimits {
  readonly maxBitfieldBytes: number;
  readonly maxExtendedBytes: number;
  readonly maxBlockBytes: number;
}

/**
 * Decodes the messages of one peer (everything after the handshake) from reads of any size. The payload of a block is copied
 * once, from the read buffer to the buffer that the handler returned; a header that is complete in one read is parsed in place.
 * Throws {@link DecodeError} on malformed bytes; nothing may be fed after that.
 */
export class PeerMessageDecoder {
  readonly #handler: PeerMessageHandler;
  readonly #limits: PeerMessageLimits;
  /** Start of a message whose fixed part was cut by the end of a read. */
  readonly #head = new Uint8Array(LONGEST_FIXED_BYTES);
  #headFilled = 0;
  /** The part of a message that is being received, and its missing bytes. */
  #mode: "head" | "block" | "body" | "skip" = "head";
  #missing = 0;
  #piece = 0;
  #begin = 0;
  #length = 0;
  #buffer: Uint8Array | undefined;
  #bodyId = 0;
  #body: Uint8Array<ArrayBuffer> | undefined;
  #bodyFilled = 0;
  #consumed = 0;
  #isStopped = false;

  constructor(handler: PeerMessageHandler, limits: PeerMessageLimits) {
    this.#handler = handler;
    this.#limits = limits;
  }

  /** Processes received bytes; `bytes` is not retained. */
  feed(bytes: Uint8Array): void {
    let at = 0;
    while (at < bytes.length && !this.#isStopped) {
      const before = at;
      if (this.#mode === "head") at = this.#takeHead(bytes, at);
      else if (this.#mode === "block") at = this.#takeBlock(bytes, at);
      else if (this.#mode === "body") at = this.#takeBody(bytes, at);
      else at = this.#takeSkipped(bytes, at);
      this.#consumed += at - before;
    }
  }

  /** Discards the rest of the current block, because its buffer is needed for something else. */
  skipBlock(): void {
    this.#buffer = undefined;
  }

  /** Stops decoding because the connection has ended. Handlers may call it. */
  stop(): void {
    this.#isStopped = true;
    this.#buffer = undefined;
  }

  #takeHead(bytes: Uint8Array, at: number): number {
    if (this.#headFilled === 0) {
      const used = this.#parse(bytes, at, bytes.length - at);
      if (used > 0) return at + used;
      this.#head.set(bytes.subarray(at));
      this.#headFilled = bytes.length - at;
      return bytes.length;
    }
    const filled = this.#headFilled;
    const taken = Math.min(LONGEST_FIXED_BYTES - filled, bytes.length - at);
    this.#head.set(bytes.subarray(at, at + taken), filled);
    const used = this.#parse(this.#head, 0, filled + taken);
    if (used === 0) {
      this.#headFilled = filled + taken;
      return at + taken;
    }
    this.#headFilled = 0;
    return at + used - filled;
  }

  /** Parses the fixed part of the message at `at`; returns its length, or 0 if `available` bytes are too few. */
  #parse(bytes: Uint8Array, at: number, available: number): number {
    if (available < 4) return 0;
    const length = readU32(bytes, at);
    if (length === 0) {
      this.#handler.keepAlive();
      return 4;
    }
    if (available < 5) return 0;
    const id = bytes[at + 4]!;
    if (id === MESSAGE.piece) {
      if (length < 9 || length - 9 > this.#limits.maxBlockBytes)
        throw this.#fault(`invalid length ${length} of a block message`);
      if (available < BLOCK_HEADER_BYTES) return 0;
      this.#beginBlock(readU32(bytes, at + 5), readU32(bytes, at + 9), length - 9);
      return BLOCK_HEADER_BYTES;
    }
    const fixed = FIXED_LENGTHS[id];
    if (fixed === undefined) return this.#beginBody(id, length - 1);
    if (length !== fixed) throw this.#fault(`expected ${fixed} bytes of message ${id}, not ${length}`);
    if (available < 4 + length) return 0;
    this.#dispatch(id, bytes, at + 5);
    return 4 + length;
  }

  #dispatch(id: number, bytes: Uint8Array, at: number): void {
    const handler = this.#handler;
    switch (id) {
      case MESSAGE.choke:
        handler.choke();
        break;
      case MESSAGE.unchoke:
        handler.unchoke();
        break;
      case MESSAGE.interested:
        handler.interested();
        break;
      case MESSAGE.notInterested:
        handler.notInterested();
        break;
      case MESSAGE.have:
        handler.have(readU32(bytes, at));
        break;
      case MESSAGE.request:
        handler.request(readU32(bytes, at), readU32(bytes, at + 4), readU32(bytes, at + 8));
        break;
      case MESSAGE.cancel:
        handler.cancel(readU32(bytes, at), readU32(bytes, at + 4), readU32(bytes, at + 8));
        break;
      case MESSAGE.reject:
        handler.reject(readU32(bytes, at), readU32(bytes, at + 4), readU32(bytes, at + 8));
        break;
      case MESSAGE.port:
        handler.port(readU16(bytes, at));
        break;
      case MESSAGE.suggest:
        handler.suggest(readU32(bytes, at));
        break;
      case MESSAGE.allowedFast:
        handler.allowedFast(readU32(bytes, at));
        break;
      case MESSAGE.haveAll:
        handler.haveAll();
        break;
      case MESSAGE.haveNone:
        handler.haveNone();
        break;
    }
  }

  #beginBlock(piece: number, begin: number, length: number): void {
    this.#piece = piece;
    this.#begin = begin;
    this.#length = length;
    this.#missing = length;
    this.#buffer = this.#handler.block(piece, begin, length);
    this.#mode = "block";
    if (length === 0) this.#endBlock();
  }

  #takeBlock(bytes: Uint8Array, at: number): number {
    const taken = Math.min(this.#missing, bytes.length - at);
    if (this.#buffer) this.#buffer.set(bytes.subarray(at, at + taken), this.#length - this.#missing);
    this.#missing -= taken;
    if (this.#missing === 0) this.#endBlock();
    return at + taken;
  }

  #endBlock(): void {
    this.#mode = "head";
    this.#handler.blockDone(this.#piece, this.#begin, this.#length);
    this.#buffer = undefined;
  }

  /** Begins a message of variable length or unknown id: its body is buffered or skipped, up to the limit of its kind. */
  #beginBody(id: number, length: number): number {
    const isBitfield = id === MESSAGE.bitfield;
    const limit = isBitfield
      ? this.#limits.maxBitfieldBytes
      : isHash(id)
        ? MAX_HASH_MESSAGE_BYTES
        : this.#limits.maxExtendedBytes;
    if (length > limit) throw this.#fault(`message ${id} of ${length} bytes exceeds ${limit}`);
    this.#bodyId = id;
    this.#missing = length;
    this.#bodyFilled = 0;
    this.#mode = isBitfield || id === MESSAGE.extended || isHash(id) ? "body" : "skip";
    if (length === 0) {
      if (id === MESSAGE.extended) throw this.#fault("extended message without an id");
      this.#mode = "head";
      if (isBitfield) this.#handler.bitfield(new Uint8Array(0));
      else if (isHash(id)) this.#handler.hash(id, new Uint8Array(0));
    }
    return 5;
  }

  #takeBody(bytes: Uint8Array, at: number): number {
    const taken = Math.min(this.#missing, bytes.length - at);
    if (this.#bodyFilled === 0 && taken === this.#missing) {
      this.#endBody(bytes.subarray(at, at + taken));
      return at + taken;
    }
    this.#append(bytes.subarray(at, at + taken));
    this.#missing -= taken;
    if (this.#missing === 0) {
      const body = this.#body!.subarray(0, this.#bodyFilled);
      this.#body = undefined;
      this.#endBody(body);
    }
    return at + taken;
  }

  #append(part: Uint8Array): void {
    const needed = this.#bodyFilled + part.length;
    if (!this.#body || this.#body.length < needed) {
      const whole = this.#bodyFilled + this.#missing;
      const grown = new Uint8Array(Math.min(whole, Math.max(INITIAL_BODY_BYTES, 2 * needed)));
      if (this.#body) grown.set(this.#body.subarray(0, this.#bodyFilled));
      this.#body = grown;
    }
    this.#body.set(part, this.#bodyFilled);
    this.#bodyFilled = needed;
  }

  #endBody(body: Uint8Array): void {
    this.#mode = "head";
    if (this.#bodyId === MESSAGE.bitfield) this.#handler.bitfield(body);
    else if (isHash(this.#bodyId)) this.#handler.hash(this.#bodyId, body);
    else this.#handler.extended(body[0]!, body.subarray(1));
  }

  #takeSkipped(bytes: Uint8Array, at: number): number {
    const taken = Math.min(this.#missing, bytes.length - at);
    this.#missing -= taken;
    if (this.#missing === 0) this.#mode = "head";
    return at + taken;
  }

  #fault(message: string): DecodeError {
    return new DecodeError("peer message", this.#consumed, message);
  }
}

function isHash(id: number): boolean {
  return id >= MESSAGE.hashRequest && id <= MESSAGE.hashReject;
}

/** Length prefix of messages of fixed length, by id. */
const FIXED_LENGTHS: readonly (number | undefined)[] = (() => {
  const lengths: (number | undefined)[] = Array(256).fill(undefined);
  for (const id of [MESSAGE.choke, MESSAGE.unchoke, MESSAGE.interested, MESSAGE.notInterested])
    lengths[id] = 1;
  for (const id of [MESSAGE.haveAll, MESSAGE.haveNone]) lengths[id] = 1;
  for (const id of [MESSAGE.have, MESSAGE.suggest, MESSAGE.allowedFast]) lengths[id] = 5;
  for (const id of [MESSAGE.request, MESSAGE.cancel, MESSAGE.reject]) lengths[id] = 13;
  lengths[MESSAGE.port] = 3;
  return lengths;
})();
