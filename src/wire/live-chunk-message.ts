import { readU32, readU48, writeU32, writeU48 } from "../base/bytes.ts";
import { checkStripe, expectAtLeast, LIVE_KIND, liveFault } from "./live-kinds.ts";
import { FRAGMENT_BYTES, MAX_LIVE_PIECE_BYTES } from "./live-limits.ts";

/** A chunk of a piece, or 16 KiB of one (CHUNK). */
export interface ChunkMessage {
  readonly kind: "chunk";
  readonly epoch: number;
  readonly seq: number;
  readonly stripe: number;
  /** Which 16 KiB of the chunk. */
  readonly fragment: number;
  /** No further fragment follows. */
  readonly isLast: boolean;
  /** Sent because it was asked for, or out of the backlog: never to be forwarded before chunks that are on time. */
  readonly isLate: boolean;
  /** Exactly 16 KiB where further fragments follow; a view on the input. */
  readonly bytes: Uint8Array;
}

/** What precedes the bytes of a chunk. */
export const CHUNK_HEAD_BYTES = 14;
const LAST = 1;
const LATE = 2;
/** The largest piece in the fewest stripes. */
const MAX_FRAGMENTS = Math.ceil(MAX_LIVE_PIECE_BYTES / 4 / FRAGMENT_BYTES) + 1;

/** Writes what precedes the bytes of a chunk into `head` (14 bytes, to be used again), so that the bytes themselves are
 * copied only once, to the writer of the connection. */
export function writeChunkHead(head: Uint8Array, chunk: Omit<ChunkMessage, "kind" | "bytes">): void {
  head[0] = LIVE_KIND.chunk;
  head[1] = (chunk.isLast ? LAST : 0) | (chunk.isLate ? LATE : 0);
  head[2] = chunk.stripe;
  head[3] = chunk.fragment;
  writeU32(head, 4, chunk.epoch);
  writeU48(head, 8, chunk.seq);
}

/** Reads a CHUNK. Throws `DecodeError`. */
export function decodeChunk(bytes: Uint8Array, stripeCount: number): ChunkMessage {
  expectAtLeast(bytes, CHUNK_HEAD_BYTES + 1);
  const length = bytes.length - CHUNK_HEAD_BYTES;
  const isLast = (bytes[1]! & LAST) !== 0;
  if (length > FRAGMENT_BYTES || (!isLast && length !== FRAGMENT_BYTES)) {
    throw liveFault(
      LIVE_KIND.chunk,
      bytes.length,
      `a fragment of ${length} bytes, ${FRAGMENT_BYTES} expected`,
    );
  }
  const fragment = bytes[3]!;
  if (fragment >= MAX_FRAGMENTS)
    throw liveFault(LIVE_KIND.chunk, 3, `fragment ${fragment} of ${MAX_FRAGMENTS}`);
  return {
    kind: "chunk",
    epoch: readU32(bytes, 4),
    seq: readU48(bytes, 8),
    stripe: checkStripe(bytes, 2, stripeCount),
    fragment,
    isLast,
    isLate: (bytes[1]! & LATE) !== 0,
    bytes: bytes.subarray(CHUNK_HEAD_BYTES),
  };
}
