import { writeU16, writeU32 } from "../../base/bytes.ts";
import { BLOCK_HEADER_BYTES, MESSAGE } from "./peer-message.ts";

/** Initial buffer size, enough for 240 requests. */
const INITIAL_BYTES = 4096;

/**
 * Encodes messages for one peer (BEP 3, 5, 6, 10, 52) into one buffer, so that many messages need a single write.
 */
export class PeerMessageWriter {
  #buffer: Uint8Array<ArrayBuffer> | undefined;
  #length = 0;

  /** Bytes in the buffer. */
  get length(): number {
    return this.#length;
  }

  /** Empties the buffer and returns its bytes, which the caller then owns; undefined if the buffer is empty. */
  take(): Uint8Array<ArrayBuffer> | undefined {
    if (this.#length === 0) return undefined;
    const bytes = this.#buffer!.subarray(0, this.#length);
    this.#buffer = undefined;
    this.#length = 0;
    return bytes;
  }

  /** Appends raw bytes, such as a handshake. */
  raw(bytes: Uint8Array): void {
    const at = this.#reserve(bytes.length);
    this.#buffer!.set(bytes, at);
  }

  keepAlive(): void {
    const at = this.#reserve(4);
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
    this.#writeOne(MESSAGE.have, piece);
  }

  suggest(piece: number): void {
    this.#writeOne(MESSAGE.suggest, piece);
  }

  allowedFast(piece: number): void {
    this.#writeOne(MESSAGE.allowedFast, piece);
  }

  port(port: number): void {
    const at = this.#head(MESSAGE.port, 2);
    writeU16(this.#buffer!, at, port);
  }

  request(piece: number, begin: number, length: number): void {
    this.#writeThree(MESSAGE.request, piece, begin, length);
  }

  cancel(piece: number, begin: number, length: number): void {
    this.#writeThree(MESSAGE.cancel, piece, begin, length);
  }

  reject(piece: number, begin: number, length: number): void {
    this.#writeThree(MESSAGE.reject, piece, begin, length);
  }

  bitfield(bits: Uint8Array): void {
    const at = this.#head(MESSAGE.bitfield, bits.length);
    this.#buffer!.set(bits, at);
  }

  /** Appends an extended message. `rest` follows the payload, so that the caller need not join them. */
  extended(id: number, payload: Uint8Array, rest?: Uint8Array): void {
    const at = this.#head(MESSAGE.extended, 1 + payload.length + (rest?.length ?? 0));
    this.#buffer![at] = id;
    this.#buffer!.set(payload, at + 1);
    if (rest) this.#buffer!.set(rest, at + 1 + payload.length);
  }

  /** Appends a hash message: the range, and the hashes if it has any. */
  hash(id: number, range: Uint8Array, hashes?: Uint8Array): void {
    const at = this.#head(id, range.length + (hashes?.length ?? 0));
    this.#buffer!.set(range, at);
    if (hashes) this.#buffer!.set(hashes, at + range.length);
  }

  block(piece: number, begin: number, payload: Uint8Array): void {
    const at = this.#reserve(BLOCK_HEADER_BYTES + payload.length);
    const buffer = this.#buffer!;
    writeU32(buffer, at, 9 + payload.length);
    buffer[at + 4] = MESSAGE.piece;
    writeU32(buffer, at + 5, piece);
    writeU32(buffer, at + 9, begin);
    buffer.set(payload, at + BLOCK_HEADER_BYTES);
  }

  #writeOne(id: number, value: number): void {
    const at = this.#head(id, 4);
    writeU32(this.#buffer!, at, value);
  }

  #writeThree(id: number, piece: number, begin: number, length: number): void {
    const at = this.#head(id, 12);
    writeU32(this.#buffer!, at, piece);
    writeU32(this.#buffer!, at + 4, begin);
    writeU32(this.#buffer!, at + 8, length);
  }

  /** Writes length and id; returns the offset of the body. */
  #head(id: number, bodyBytes: number): number {
    const at = this.#reserve(5 + bodyBytes);
    writeU32(this.#buffer!, at, 1 + bodyBytes);
    this.#buffer![at + 4] = id;
    return at + 5;
  }

  #reserve(bytes: number): number {
    const at = this.#length;
    const needed = at + bytes;
    if (!this.#buffer) this.#buffer = new Uint8Array(Math.max(INITIAL_BYTES, needed));
    else if (this.#buffer.length < needed) {
      const grown = new Uint8Array(2 * needed);
      grown.set(this.#buffer.subarray(0, at));
      this.#buffer = grown;
    }
    this.#length = needed;
    return at;
  }
}
