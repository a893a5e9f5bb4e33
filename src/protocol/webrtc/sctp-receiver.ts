import { readU16, readU32 } from "../../base/bytes.ts";
import { DecodeError } from "../../base/errors.ts";
import { DATA_HEADER_BYTES, type SackChunk, type SctpChunk, tsnAfter, tsnDistance } from "./sctp-packet.ts";

/** One DATA chunk in order. `bytes` is a view that is valid during the call. */
export interface IncomingData {
  readonly flags: number;
  readonly streamId: number;
  readonly payload: number;
  readonly bytes: Uint8Array;
}

/** Memory limit of a connection for bytes that arrived out of order or that the reader has not taken: 50 Mbit/s at 80 ms. */
const WINDOW_BYTES = 512 * 1024;
/** Limits the chunks out of order: the smallest have one byte. */
const MAX_OUT_OF_ORDER = 1_024;
const DATA_OVERHEAD = DATA_HEADER_BYTES - 4;

/** The receiving half of an association: puts DATA chunks in order, within a window. */
export class SctpReceiver {
  #nextTsn = 0;
  readonly #outOfOrder = new Map<number, { readonly flags: number; readonly value: Uint8Array }>();
  #outOfOrderBytes = 0;
  #isDuplicate = false;

  /** Sets the first TSN of the peer. */
  start(firstTsn: number): void {
    this.#nextTsn = firstTsn;
  }

  /** Whether the peer must hear at once that chunks are missing, or that it repeats. */
  get isUrgent(): boolean {
    return this.#isDuplicate || this.#outOfOrder.size > 0;
  }

  /** Takes a chunk, and passes chunks that are now in order to `deliver`. `waitingBytes` are delivered, but not yet read. */
  received({ flags, value }: SctpChunk, waitingBytes: number, deliver: (data: IncomingData) => void): void {
    if (value.length < DATA_OVERHEAD + 1) throw new DecodeError("SCTP", 0, "DATA is empty");
    const tsn = readU32(value, 0);
    const ahead = tsnDistance(tsn, this.#nextTsn);
    if (ahead < 0 || this.#outOfOrder.has(tsn)) {
      this.#isDuplicate = true;
      return;
    }
    // The peer sends it again when there is room.
    if (this.#roomBytes(waitingBytes) < value.length) return;
    if (ahead > 0) {
      if (ahead > 0xffff || this.#outOfOrder.size >= MAX_OUT_OF_ORDER) return;
      this.#outOfOrder.set(tsn, { flags, value: value.slice() });
      this.#outOfOrderBytes += value.length;
      return;
    }
    this.#nextTsn = tsnAfter(tsn);
    deliver(incoming(flags, value));
    for (;;) {
      const next = this.#outOfOrder.get(this.#nextTsn);
      if (!next) return;
      this.#outOfOrder.delete(this.#nextTsn);
      this.#outOfOrderBytes -= next.value.length;
      this.#nextTsn = tsnAfter(this.#nextTsn);
      deliver(incoming(next.flags, next.value));
    }
  }

  /** Returns the acknowledgement of everything received. */
  sack(waitingBytes: number): SackChunk {
    this.#isDuplicate = false;
    const offsets = [...this.#outOfOrder.keys()].map((tsn) => tsnDistance(tsn, this.#nextTsn) + 1);
    const gaps: [number, number][] = [];
    for (const offset of offsets.sort((a, b) => a - b)) {
      const last = gaps.at(-1);
      if (last && last[1] === offset - 1) last[1] = offset;
      else gaps.push([offset, offset]);
    }
    return {
      cumulativeTsn: tsnAfter(this.#nextTsn, -1),
      windowBytes: this.#roomBytes(waitingBytes),
      gaps,
    };
  }

  #roomBytes(waitingBytes: number): number {
    return Math.max(0, WINDOW_BYTES - this.#outOfOrderBytes - waitingBytes);
  }
}

/** The window that INIT announces. */
export const INITIAL_RECEIVE_WINDOW_BYTES = WINDOW_BYTES;

function incoming(flags: number, value: Uint8Array): IncomingData {
  return {
    flags,
    streamId: readU16(value, 4),
    payload: readU32(value, 8),
    bytes: value.subarray(DATA_OVERHEAD),
  };
}
