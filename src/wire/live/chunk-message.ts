import { readU32, readU48, writeU32, writeU48 } from "../../base/bytes.ts";
import { FRAGMENT_BYTES, MAX_LIVE_PIECE_BYTES } from "./limits.ts";
import { checkStripe, expectAtLeast, LIVE_KIND, liveMessageError } from "./message-kind.ts";

/** A chunk of a piece, or a 16 KiB fragment of one (CHUNK). */
export interface ChunkMessage {
  readonly kind: "chunk";
  readonly epoch: number;
  readonly seq: number;
  readonly stripe: number;
  /** Index of the fragment in the chunk. */
  readonly fragment: number;
  /** This is the last fragment. */
  readonly isLast: boolean;
  /** Sent on request or from the backlog. Forward it only after chunks that are on time. */
  readonly isLate: boolean;
  /** Exactly 16 KiB unless this is the last fragment; a view of the input. */
  readonly bytes: Uint8Array;
}

/** Length of the header before the bytes of a chunk. */
export const CHUNK_HEAD_BYTES = 14;
const LAST = 1;
const LATE = 2;
/** For the largest piece and the fewest stripes. */
const MAX_FRAGMENTS = Math.ceil(MAX_LIVE_PIECE_BYTES / 4 / FRAGMENT_BYTES) + 1;

/** Writes the header of a CHUNK into `head` (14 bytes, reusable), so that the bytes of the chunk are copied only once, to the
 * writer of the connection. */
export function writeChunkHead(head: Uint8Array, chunk: Omit<ChunkMessage, "kind" | "bytes">): void {
  head[0] = LIVE_KIND.chunk;
  head[1] = (chunk.isLast ? LAST : 0) | (chunk.isLate ? LATE : 0);
  head[2] = chunk.stripe;
  head[3] = chunk.fragment;
  writeU32(head, 4, chunk.epoch);
  writeU48(head, 8, chunk.seq);
}

/** Decodes a CHUNK. Throws `DecodeError`. */
export function decodeChunk(bytes: Uint8Array, stripeCount: number): ChunkMessage {
  expectAtLeast(bytes, CHUNK_HEAD_BYTES + 1);
  const length = bytes.length - CHUNK_HEAD_BYTES;
  const isLast = (bytes[1]! & LAST) !== 0;
  if (length > FRAGMENT_BYTES || (!isLast && length !== FRAGMENT_BYTES)) {
    throw liveMessageError(
      LIVE_KIND.chunk,
      bytes.length,
      `expected a fragment of ${FRAGMENT_BYTES} bytes, not ${length}`,
    );
  }
  const fragment = bytes[3]!;
  if (fragment >= MAX_FRAGMENTS)
    throw liveMessageError(LIVE_KIND.chunk, 3, `expected a fragment below ${MAX_FRAGMENTS}, not ${fragment}`);
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
