import { writeU16, writeU32 } from "../base/bytes.ts";
import { BLOCK_HEADER_BYTES, MESSAGE } from "./peer-message.ts";

/** A fresh batch starts with this much room: 240 requests. */
const FIRST_ROOM_BYTES = 4096;

/**
 * Gathers messages for one peer into one buffer, so that a turn costs one write however many messages it brings.
 * The lengths and ids are those of BEP 3, 5, 6, 10 and 52.
 */
export class PeerMessageWriter {
  #buffer: Uint8Array<ArrayBuffer> | undefined;
  #length = 0;

  /** Bytes gathered and not taken yet. */
  get length(): number {
    return this.#length;
  }

  /** All that was gathered, now the caller's own; undefined where there is nothing. */
  take(): Uint8Array<ArrayBuffer> | undefined {
    if (this.#length === 0) return undefined;
    const bytes = this.#buffer!.subarray(0, this.#length);
    this.#buffer = undefined;
    this.#length = 0;
    return bytes;
  }

  /** Bytes as they are, such as a handshake. */
  raw(bytes: Uint8Array): void {
    const at = this.#room(bytes.length);
    this.#buffer!.set(bytes, at);
  }

  keepAlive(): void {
    const at = this.#room(4);
    writeU32(this.#buffer!, at, 0);
  }

  choke(): void {
    this.#head(MESSAGE.choke, 0);
  }

  unchoke(): void {
    this.#head(MESSAGE.unchoke, 0);
  }

  interested(): void {
    this.#head(MESSAGE.interested, 0);
  }

  notInterested(): void {
    this.#head(MESSAGE.notInterested, 0);
  }

  haveAll(): void {
    this.#head(MESSAGE.haveAll, 0);
  }

  haveNone(): void {
    this.#head(MESSAGE.haveNone, 0);
  }

  have(piece: number): void {
    this.#one(MESSAGE.have, piece);
  }

  suggest(piece: number): void {
    this.#one(MESSAGE.suggest, piece);
  }

  allowedFast(piece: number): void {
    this.#one(MESSAGE.allowedFast, piece);
  }

  port(port: number): void {
    const at = this.#head(MESSAGE.port, 2);
    writeU16(this.#buffer!, at, port);
  }

  request(piece: number, begin: number, length: number): void {
    this.#three(MESSAGE.request, piece, begin, length);
  }

  cancel(piece: number, begin: number, length: number): void {
    this.#three(MESSAGE.cancel, piece, begin, length);
  }

  reject(piece: number, begin: number, length: number): void {
    this.#three(MESSAGE.reject, piece, begin, length);
  }

  bitfield(bits: Uint8Array): void {
    const at = this.#head(MESSAGE.bitfield, bits.length);
    this.#buffer!.set(bits, at);
  }

  /** `rest` follows the payload: what is large need not be joined with what precedes it first. */
  extended(id: number, payload: Uint8Array, rest?: Uint8Array): void {
    const at = this.#head(MESSAGE.extended, 1 + payload.length + (rest?.length ?? 0));
    this.#buffer![at] = id;
    this.#buffer!.set(payload, at + 1);
    if (rest) this.#buffer!.set(rest, at + 1 + payload.length);
  }

  /** A message about hashes: the range that it is about, then the hashes where it brings any. */
  hash(id: number, range: Uint8Array, hashes?: Uint8Array): void {
    const at = this.#head(id, range.length + (hashes?.length ?? 0));
    this.#buffer!.set(range, at);
    if (hashes) this.#buffer!.set(hashes, at + range.length);
  }

  block(piece: number, begin: number, payload: Uint8Array): void {
    const at = this.#room(BLOCK_HEADER_BYTES + payload.length);
    const buffer = this.#buffer!;
    writeU32(buffer, at, 9 + payload.length);
    buffer[at + 4] = MESSAGE.piece;
    writeU32(buffer, at + 5, piece);
    writeU32(buffer, at + 9, begin);
    buffer.set(payload, at + BLOCK_HEADER_BYTES);
  }

  #one(id: number, value: number): void {
    const at = this.#head(id, 4);
    writeU32(this.#buffer!, at, value);
  }

  #three(id: number, piece: number, begin: number, length: number): void {
    const at = this.#head(id, 12);
    writeU32(this.#buffer!, at, piece);
    writeU32(this.#buffer!, at + 4, begin);
    writeU32(this.#buffer!, at + 8, length);
  }

  /** Writes length and id; returns where the `bodyBytes` that follow go. */
  #head(id: number, bodyBytes: number): number {
    const at = this.#room(5 + bodyBytes);
    writeU32(this.#buffer!, at, 1 + bodyBytes);
    this.#buffer![at + 4] = id;
    return at + 5;
  }

  #room(bytes: number): number {
    const at = this.#length;
    const needed = at + bytes;
    if (!this.#buffer) this.#buffer = new Uint8Array(Math.max(FIRST_ROOM_BYTES, needed));
    else if (this.#buffer.length < needed) {
      const grown = new Uint8Array(2 * needed);
      grown.set(this.#buffer.subarray(0, at));
      this.#buffer = grown;
    }
    this.#length = needed;
    return at;
  }
}
