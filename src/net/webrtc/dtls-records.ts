import { readU16, readU48, writeU16, writeU48 } from "../../base/bytes.ts";
import type { Aes128Gcm } from "../../runtime/contract.ts";

/** The keys of a DTLS connection, for one direction. */
export interface RecordKeys {
  readonly cipher: Aes128Gcm;
  /** The first four bytes of every nonce (RFC 5288 3). */
  readonly salt: Uint8Array;
}

/** Type, version, epoch, sequence number and length (RFC 6347 4.1). */
export const RECORD_HEADER_BYTES = 13;
export const CONTENT = { changeCipher: 20, alert: 21, handshake: 22, applicationData: 23 } as const;
const EXPLICIT_NONCE_BYTES = 8;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** After the handshake. There is no renegotiation. */
const EPOCH = 1;
/** The replay window (RFC 6347 4.1.2.6): a record that is older than this is dropped. */
const WINDOW_RECORDS = 1_024;

/** Protects the records of an established connection: AES-128-GCM with a window against replay. */
export class DtlsRecords {
  readonly #sending: RecordKeys;
  readonly #receiving: RecordKeys;
  #nextSequence: number;
  readonly #seen = new Uint32Array(WINDOW_RECORDS / 32);
  #newest = -1;

  /** `nextSequence`: of the next record in epoch 1. */
  constructor(sending: RecordKeys, receiving: RecordKeys, nextSequence: number) {
    this.#sending = sending;
    this.#receiving = receiving;
    this.#nextSequence = nextSequence;
  }

  /** Returns a datagram with one record of application data. */
  seal(bytes: Uint8Array): Uint8Array {
    const { cipher, salt } = this.#sending;
    const datagram = new Uint8Array(RECORD_HEADER_BYTES + EXPLICIT_NONCE_BYTES + bytes.length + TAG_BYTES);
    writeHeader(datagram, this.#nextSequence++, bytes.length);
    const nonce = new Uint8Array(NONCE_BYTES);
    nonce.set(salt);
    nonce.set(datagram.subarray(3, 11), salt.length);
    const sealed = cipher.seal(nonce, additionalData(datagram, bytes.length), bytes);
    writeU16(datagram, 11, EXPLICIT_NONCE_BYTES + sealed.length);
    datagram.set(nonce.subarray(salt.length), RECORD_HEADER_BYTES);
    datagram.set(sealed, RECORD_HEADER_BYTES + EXPLICIT_NONCE_BYTES);
    return datagram;
  }

  /** Decrypts a whole record of epoch 1; undefined if it is not authentic or a repetition. */
  open(record: Uint8Array): Uint8Array | undefined {
    const at = RECORD_HEADER_BYTES + EXPLICIT_NONCE_BYTES;
    if (record.length < at + TAG_BYTES || readU16(record, 3) !== EPOCH) return undefined;
    const sequence = readU48(record, 5);
    if (this.#isRepeated(sequence)) return undefined;
    const { cipher, salt } = this.#receiving;
    const nonce = new Uint8Array(NONCE_BYTES);
    nonce.set(salt);
    nonce.set(record.subarray(RECORD_HEADER_BYTES, at), salt.length);
    const length = record.length - at - TAG_BYTES;
    const plain = cipher.open(nonce, additionalData(record, length), record.subarray(at));
    if (plain) this.#received(sequence);
    return plain;
  }

  #isRepeated(sequence: number): boolean {
    if (sequence > this.#newest) return false;
    if (sequence <= this.#newest - WINDOW_RECORDS) return true;
    return (this.#seen[slotOf(sequence)]! & (1 << (sequence % 32))) !== 0;
  }

  #received(sequence: number): void {
    const from = Math.max(this.#newest + 1, sequence - WINDOW_RECORDS + 1);
    for (let skipped = from; skipped <= sequence; skipped++)
      this.#seen[slotOf(skipped)]! &= ~(1 << (skipped % 32));
    this.#seen[slotOf(sequence)]! |= 1 << (sequence % 32);
    this.#newest = Math.max(this.#newest, sequence);
  }
}

function slotOf(sequence: number): number {
  return Math.floor((sequence % WINDOW_RECORDS) / 32);
}

function writeHeader(record: Uint8Array, sequence: number, length: number): void {
  record[0] = CONTENT.applicationData;
  record[1] = 0xfe;
  record[2] = 0xfd;
  writeU16(record, 3, EPOCH);
  writeU48(record, 5, sequence);
  writeU16(record, 11, length);
}

/** The sequence number, the type, the version and the length of the plain bytes (RFC 5246 6.2.3.3). */
function additionalData(record: Uint8Array, length: number): Uint8Array {
  const data = new Uint8Array(RECORD_HEADER_BYTES);
  data.set(record.subarray(3, 11));
  data.set(record.subarray(0, 3), 8);
  writeU16(data, 11, length);
  return data;
}
