import { CHUNK_HEAD_BYTES, type ChunkMessage, writeChunkHead } from "./live-chunk-message.ts";
import { chunkBytes } from "./live-chunks.ts";
import { LIVE_KIND, liveFault } from "./live-kinds.ts";
import { FRAGMENT_BYTES, MAX_OPEN_CHUNKS } from "./live-limits.ts";
import type { PeerMessageWriter } from "./peer-message-writer.ts";

/** A chunk with all its bytes, which are the owner's. */
export interface WholeChunk {
  readonly epoch: number;
  readonly seq: number;
  readonly stripe: number;
  readonly isLate: boolean;
  readonly bytes: Uint8Array;
}

/** Writes a chunk as one CHUNK for each 16 KiB begun; `id` is the receiver's number for `sl_live`. Its bytes are copied
 * once. */
export function writeChunk(writer: PeerMessageWriter, id: number, chunk: WholeChunk): void {
  const head = new Uint8Array(CHUNK_HEAD_BYTES);
  for (let at = 0, fragment = 0; at < chunk.bytes.length; at += FRAGMENT_BYTES, fragment++) {
    const isLast = at + FRAGMENT_BYTES >= chunk.bytes.length;
    const { epoch, seq, stripe, isLate } = chunk;
    writeChunkHead(head, { epoch, seq, stripe, isLate, fragment, isLast });
    writer.extended(id, head, chunk.bytes.subarray(at, at + FRAGMENT_BYTES));
  }
}

/** A chunk of which more is to come. */
interface OpenChunk {
  readonly epoch: number;
  readonly seq: number;
  readonly stripe: number;
  bytes: Uint8Array<ArrayBuffer>;
  length: number;
  fragments: number;
}

/** Puts the fragments of one connection together. What is held is bounded by {@link MAX_OPEN_CHUNKS} chunks of the
 * largest size, and grows only as bytes come. */
export class ChunkAssembler {
  readonly #maxChunkBytes: number;
  readonly #open: OpenChunk[] = [];

  constructor(format: { readonly stripeCount: number; readonly maxPieceBytes: number }) {
    this.#maxChunkBytes = chunkBytes(format.maxPieceBytes, format.stripeCount);
  }

  /** Takes a CHUNK; gives the whole chunk with its last fragment. Throws `DecodeError` where fragments are left out or
   * come twice, where too many chunks are begun, or a chunk is larger than the stream's can be. */
  take(message: ChunkMessage): WholeChunk | undefined {
    const { epoch, seq, stripe, isLate } = message;
    const index = this.#open.findIndex(
      (open) => open.stripe === stripe && open.seq === seq && open.epoch === epoch,
    );
    const open = this.#open[index];
    if (message.fragment !== (open?.fragments ?? 0)) {
      throw liveFault(LIVE_KIND.chunk, 3, `fragment ${message.fragment}, ${open?.fragments ?? 0} expected`);
    }
    const length = (open?.length ?? 0) + message.bytes.length;
    if (length > this.#maxChunkBytes) {
      throw liveFault(LIVE_KIND.chunk, 3, `a chunk of ${length} bytes, at most ${this.#maxChunkBytes}`);
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
      throw liveFault(LIVE_KIND.chunk, 3, `more than ${MAX_OPEN_CHUNKS} chunks begun`);
    }
    this.#open.push({ epoch, seq, stripe, bytes: bytes.slice(), length: bytes.length, fragments: 1 });
  }
}

function append(open: OpenChunk, bytes: Uint8Array, mostBytes: number): void {
  const length = open.length + bytes.length;
  if (length > open.bytes.length) {
    const larger = new Uint8Array(Math.min(mostBytes, 2 * length));
    larger.set(open.bytes.subarray(0, open.length));
    open.bytes = larger;
  }
  open.bytes.set(bytes, open.length);
  open.length = length;
  open.fragments++;
}
