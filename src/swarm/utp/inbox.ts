import {
  MAX_EARLY_PACKETS,
  MAX_RECEIVED_BYTES,
  RECEIVE_WINDOW_BYTES,
  WAITING_PACKET_BYTES,
} from "./limits.ts";
import { sequenceAfter, stepsBetween } from "./sequence.ts";

/** Memory that all connections together have for what waits. */
export class ReceiveMemory {
  usedBytes = 0;

  get hasRoom(): boolean {
    return this.usedBytes < MAX_RECEIVED_BYTES;
  }
}

/** The most bytes of a selective acknowledgement that we send: 64 · 8 packets, as many as common senders have on their way. */
const MAX_MASK_BYTES = 64;

/**
 * What came: in order it goes on at once, early packets wait for those before them, and all waits while nobody reads.
 */
export class Inbox {
  readonly #memory: ReceiveMemory;
  /** Copies of packets that came early, by number. */
  readonly #early = new Map<number, Uint8Array>();
  /** In order, unread. */
  #unread: Uint8Array[] = [];
  #waitingBytes = 0;
  #lastSequence: number;
  /** The last packet that there will be (BEP 29 FIN). */
  #endSequence: number | undefined;
  isPaused = false;

  /** `lastSequence` is the number of the last packet that was taken. */
  constructor(memory: ReceiveMemory, lastSequence: number) {
    this.#memory = memory;
    this.#lastSequence = lastSequence;
  }

  /** The last packet that came without a gap. */
  get ack(): number {
    return this.#lastSequence;
  }

  /** How many bytes more may come. */
  get windowBytes(): number {
    return this.#memory.hasRoom ? Math.max(0, RECEIVE_WINDOW_BYTES - this.#waitingBytes) : 0;
  }

  get hasGap(): boolean {
    return this.#early.size > 0;
  }

  /** All has come, and was read. */
  get isAtEnd(): boolean {
    return this.#endSequence === this.#lastSequence && this.#unread.length === 0;
  }

  /**
   * Takes a packet; `deliver` hears of all that is in order now. Returns false where it had come before, does not fit, or
   * is beyond the end.
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
      const mayWait = this.windowBytes >= payload.length + WAITING_PACKET_BYTES;
      if (!mayWait || this.#early.has(sequence)) return false;
    }
    if (isLast) this.#endSequence ??= sequence;
    if (steps > 1) {
      this.#early.set(sequence, payload.slice());
      this.#count(payload.length + WAITING_PACKET_BYTES);
      return true;
    }
    this.#lastSequence = sequence;
    this.#pass(payload, true, deliver);
    for (;;) {
      const next = sequenceAfter(this.#lastSequence);
      const early = this.#early.get(next);
      if (!early) return true;
      this.#early.delete(next);
      this.#count(-early.length - WAITING_PACKET_BYTES);
      this.#lastSequence = next;
      this.#pass(early, false, deliver);
    }
  }

  /** Hands on what waits for a reader. */
  resume(deliver: (bytes: Uint8Array) => void): void {
    this.isPaused = false;
    const unread = this.#unread;
    this.#unread = [];
    for (const bytes of unread) {
      this.#count(-bytes.length - WAITING_PACKET_BYTES);
      deliver(bytes);
    }
  }

  /** Which packets after the next expected one are here (BEP 29): undefined where none is. */
  selectiveAck(): Uint8Array | undefined {
    if (this.#early.size === 0) return undefined;
    let furthest = 0;
    for (const sequence of this.#early.keys()) {
      furthest = Math.max(furthest, stepsBetween(this.#lastSequence, sequence) - 2);
    }
    const wanted = 4 * Math.ceil((furthest + 1) / 32);
    const mask = new Uint8Array(Math.min(wanted, MAX_MASK_BYTES));
    for (const sequence of this.#early.keys()) {
      const bit = stepsBetween(this.#lastSequence, sequence) - 2;
      if (bit >> 3 < mask.length) mask[bit >> 3]! |= 1 << (bit & 7);
    }
    return mask;
  }

  /** Forgets all that waits. */
  clear(): void {
    this.#early.clear();
    this.#unread = [];
    this.#count(-this.#waitingBytes);
  }

  #pass(bytes: Uint8Array, isView: boolean, deliver: (bytes: Uint8Array) => void): void {
    if (bytes.length === 0) return;
    if (!this.isPaused) {
      deliver(bytes);
      return;
    }
    this.#unread.push(isView ? bytes.slice() : bytes);
    this.#count(bytes.length + WAITING_PACKET_BYTES);
  }

  #count(bytes: number): void {
    this.#waitingBytes += bytes;
    this.#memory.usedBytes += bytes;
  }
}
