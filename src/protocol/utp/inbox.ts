import {
  MAX_EARLY_PACKETS,
  MAX_RECEIVED_BYTES,
  RECEIVE_WINDOW_BYTES,
  WAITING_PACKET_BYTES,
} from "./limits.ts";
import { sequenceAfter, stepsBetween } from "./sequence.ts";

/** Receive buffer memory of all connections together. */
export class ReceiveMemory {
  usedBytes = 0;

  get hasRoom(): boolean {
    return this.usedBytes < MAX_RECEIVED_BYTES;
  }
}

/** Bits of sequence numbers in a ring: a power of two above MAX_EARLY_PACKETS. */
const RING_BITS = 2_048;

/**
 * Orders received packets: delivers bytes in order, and buffers packets behind a gap and all packets while paused.
 */
export class Inbox {
  readonly #memory: ReceiveMemory;
  /** Copies of packets behind a gap, by sequence number. */
  readonly #early = new Map<number, Uint8Array>();
  /** One bit for each of them, at its sequence number modulo RING_BITS. */
  readonly #bits = new Uint8Array(RING_BITS / 8);
  /** The highest of their sequence numbers. */
  #furthest = 0;
  /** Bytes in order, buffered while paused. */
  #unread: Uint8Array[] = [];
  #bufferedBytes = 0;
  #lastSequence: number;
  /** Sequence number of the last packet (BEP 29 FIN). */
  #endSequence: number | undefined;
  isPaused = false;

  /** `lastSequence` is the number of the last packet already taken. */
  constructor(memory: ReceiveMemory, lastSequence: number) {
    this.#memory = memory;
    this.#lastSequence = lastSequence;
  }

  /** The last sequence number received without a gap. */
  get ack(): number {
    return this.#lastSequence;
  }

  /** The receive window in bytes. */
  get windowBytes(): number {
    return this.#memory.hasRoom ? Math.max(0, RECEIVE_WINDOW_BYTES - this.#bufferedBytes) : 0;
  }

  get hasGap(): boolean {
    return this.#early.size > 0;
  }

  /** Whether everything up to the FIN has been delivered. */
  get isAtEnd(): boolean {
    return this.#endSequence === this.#lastSequence && this.#unread.length === 0;
  }

  /**
   * Takes a packet and delivers all bytes now in order. Returns false if the packet is a duplicate, does not fit the buffer,
   * or is beyond the FIN.
   */
  take(
    sequence: number,
    payload: Uint8Array,
    isLast: boolean,
    deliver: (bytes: Uint8Array) => void,
  ): boolean {
    const steps = stepsBetween(this.#lastSequence, sequence);
    if (steps <= 0 || steps > MAX_EARLY_PACKETS) return false;
    if (this.#endSequence !== undefined && stepsBetween(this.#endSequence, sequence) > 0) return false;
    if (steps > 1 || this.isPaused) {
      const fits = this.windowBytes >= payload.length + WAITING_PACKET_BYTES;
      if (!fits || this.#early.has(sequence)) return false;
    }
    if (isLast) this.#endSequence ??= sequence;
    if (steps > 1) {
      if (!this.hasGap || stepsBetween(this.#furthest, sequence) > 0) this.#furthest = sequence;
      this.#early.set(sequence, payload.slice());
      this.#flipBit(sequence);
      this.#count(payload.length + WAITING_PACKET_BYTES);
      return true;
    }
    this.#lastSequence = sequence;
    this.#deliverOrBuffer(payload, true, deliver);
    for (;;) {
      const next = sequenceAfter(this.#lastSequence);
      const early = this.#early.get(next);
      if (!early) return true;
      this.#early.delete(next);
      this.#flipBit(next);
      this.#count(-early.length - WAITING_PACKET_BYTES);
      this.#lastSequence = next;
      this.#deliverOrBuffer(early, false, deliver);
    }
  }

  /** Delivers the bytes buffered while paused. */
  resume(deliver: (bytes: Uint8Array) => void): void {
    this.isPaused = false;
    const unread = this.#unread;
    this.#unread = [];
    for (const bytes of unread) {
      this.#count(-bytes.length - WAITING_PACKET_BYTES);
      deliver(bytes);
    }
  }

  /** Returns the selective ack mask of packets behind the gap (BEP 29); undefined without a gap. */
  selectiveAck(): Uint8Array | undefined {
    if (!this.hasGap) return undefined;
    // The first bit stands for the second packet after the acknowledged one.
    const first = sequenceAfter(this.#lastSequence, 2);
    const mask = new Uint8Array(4 * Math.ceil((stepsBetween(first, this.#furthest) + 1) / 32));
    const shift = first & 7;
    for (let i = 0; i < mask.length; i++) {
      const at = (first >> 3) + i;
      mask[i] =
        (this.#bits[at % this.#bits.length]! | (this.#bits[(at + 1) % this.#bits.length]! << 8)) >> shift;
    }
    return mask;
  }

  /** Whether a packet would start a gap or fill a part of one. */
  changesGap(sequence: number): boolean {
    return this.hasGap
      ? stepsBetween(this.#furthest, sequence) !== 1
      : stepsBetween(this.#lastSequence, sequence) !== 1;
  }

  /** Discards all buffered packets. */
  clear(): void {
    this.#early.clear();
    this.#bits.fill(0);
    this.#unread = [];
    this.#count(-this.#bufferedBytes);
  }

  #flipBit(sequence: number): void {
    this.#bits[(sequence & (RING_BITS - 1)) >> 3]! ^= 1 << (sequence & 7);
  }

  #deliverOrBuffer(bytes: Uint8Array, isView: boolean, deliver: (bytes: Uint8Array) => void): void {
    if (bytes.length === 0) return;
    if (!this.isPaused) {
      deliver(bytes);
      return;
    }
    this.#unread.push(isView ? bytes.slice() : bytes);
    this.#count(bytes.length + WAITING_PACKET_BYTES);
  }

  #count(bytes: number): void {
    this.#bufferedBytes += bytes;
    this.#memory.usedBytes += bytes;
  }
}
