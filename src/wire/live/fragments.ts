import type { ChunkMessage } from "./chunk-message.ts";
import { chunkBytes } from "./chunks.ts";
import { MAX_OPEN_CHUNKS } from "./limits.ts";
import { LIVE_KIND, liveMessageError } from "./message-kind.ts";

/** A complete chunk; the receiver owns `bytes`. */
interface WholeChunk {
  readonly epoch: number;
  readonly seq: number;
  readonly stripe: number;
  readonly isLate: boolean;
  readonly bytes: Uint8Array;
}

/** A chunk that is still incomplete. */
interface OpenChunk {
  readonly epoch: number;
  readonly seq: number;
  readonly stripe: number;
  bytes: Uint8Array<ArrayBuffer>;
  length: number;
  fragments: number;
}

/** Reassembles the fragments of one connection. Memory is limited to {@link MAX_OPEN_CHUNKS} chunks of the largest size, and is
 * only allocated as bytes arrive. */
export class ChunkAssembler {
  readonly #maxChunkBytes: number;
  readonly #open: OpenChunk[] = [];

  constructor(format: { readonly stripeCount: number; readonly maxPieceBytes: number }) {
    this.#maxChunkBytes = chunkBytes(format.maxPieceBytes, format.stripeCount);
  }

  /** Processes a CHUNK; returns the complete chunk with its last fragment. Throws `DecodeError` on missing or repeated fragments,
   * too many open chunks, or a chunk larger than the stream allows. */
  take(message: ChunkMessage): WholeChunk | undefined {
    const { epoch, seq, stripe, isLate } = message;
    const index = this.#open.findIndex(
      (open) => open.stripe === stripe && open.seq === seq && open.epoch === epoch,
    );
    const open = this.#open[index];
    if (message.fragment !== (open?.fragments ?? 0)) {
      throw liveMessageError(
        LIVE_KIND.chunk,
        3,
        `expected fragment ${open?.fragments ?? 0}, not ${message.fragment}`,
      );
    }
    const length = (open?.length ?? 0) + message.bytes.length;
    if (length > this.#maxChunkBytes) {
      throw liveMessageError(
        LIVE_KIND.chunk,
        3,
        `expected a chunk of at most ${this.#maxChunkBytes} bytes, not ${length}`,
      );
    }
    if (!open && message.isLast) return { epoch, seq, stripe, isLate, bytes: message.bytes.slice() };
    if (!open) {
      this.#begin(message);
      return undefined;
    }
    append(open, message.bytes, this.#maxChunkBytes);
    if (!message.isLast) return undefined;
    this.#open.splice(index, 1);
    return { epoch, seq, stripe, isLate, bytes: open.bytes.subarray(0, open.length) };
  }

  #begin({ epoch, seq, stripe, bytes }: ChunkMessage): void {
    if (this.#open.length >= MAX_OPEN_CHUNKS) {
      throw liveMessageError(LIVE_KIND.chunk, 3, `more than ${MAX_OPEN_CHUNKS} incomplete chunks`);
    }
    this.#open.push({ epoch, seq, stripe, bytes: bytes.slice(), length: bytes.length, fragments: 1 });
  }
}

function append(open: OpenChunk, bytes: Uint8Array, maxBytes: number): void {
  const length = open.length + bytes.length;
  if (length > open.bytes.length) {
    const larger = new Uint8Array(Math.min(maxBytes, 2 * length));
    larger.set(open.bytes.subarray(0, open.length));
    open.bytes = larger;
  }
  open.bytes.set(bytes, open.length);
  open.length = length;
  open.fragments++;
}
