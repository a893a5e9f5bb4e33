import { assert } from "../../base/assert.ts";
import { readU16, readU32, readU48, writeU16, writeU32, writeU48 } from "../../base/bytes.ts";
import { DecodeError } from "../../base/errors.ts";
import { SIGNATURE_BYTES } from "../../base/signature.ts";
import { MAX_PIECE_SPAN_MS } from "./limits.ts";

/** The header of a piece, signed by the source. */
export interface PieceHeader {
  /** Time at which the source last started without state, in UNIX seconds. Pieces are ordered by epoch, then by number. */
  readonly epoch: number;
  /** Number of the piece; increases by one per piece (48 bits). */
  readonly seq: number;
  /** Wall clock of the source when it received the last byte of the piece, in UNIX ms (48 bits). */
  readonly timestampMs: number;
  /** Duration of the piece. */
  readonly spanMs: number;
  /** First program clock reference in the piece, in ticks of 27 MHz; undefined if there is none. */
  readonly clockReference: number | undefined;
  /** Offset in the piece at which a player can start (tables, then a keyframe); undefined if there is no such position. */
  readonly randomAccessOffset: number | undefined;
  /** An HLS segment starts at the random access point. */
  readonly isSegmentStart: boolean;
  /** Number of the segment that starts or continues in this piece (32 bits); before the first segment, the number of the first. */
  readonly segment: number;
  /** Clocks or continuity counters of the media jump at the start of this piece. */
  readonly isDiscontinuity: boolean;
  /** The source ends the stream with this piece. */
  readonly isEnd: boolean;
  /** Length of the piece. */
  readonly pieceBytes: number;
  /** Hash of the whole previous header (20 bytes); zeros in the first header of an epoch. */
  readonly previousHash: Uint8Array;
  /** Concatenated hashes of the chunks by stripe, 20 bytes each. */
  readonly chunkHashes: Uint8Array;
}

/** Length of the fields before the chunk hashes. */
const FIXED_BYTES = 60;
/** Length of a hash: the first 20 bytes of a SHA-256. */
export const LIVE_HASH_BYTES = 20;
const FORMAT = "piece header";
const VERSION = 1;
const FLAG = { randomAccess: 1, segmentStart: 2, discontinuity: 4, end: 8, clockReference: 16 } as const;
const MAX_CLOCK_REFERENCE = 2 ** 33 * 300;
const TS_PACKET_BYTES = 188;

/** Returns the length of a header: 60 bytes, a hash per stripe, the signature. */
export function headerBytes(stripeCount: number): number {
  return FIXED_BYTES + LIVE_HASH_BYTES * stripeCount + SIGNATURE_BYTES;
}

/** Encodes a header with space for its signature at the end. The caller keeps to the limits of the protocol. */
export function encodeHeader(header: PieceHeader): Uint8Array<ArrayBuffer> {
  const stripeCount = header.chunkHashes.length / LIVE_HASH_BYTES;
  const bytes = new Uint8Array(headerBytes(stripeCount));
  bytes[0] = VERSION;
  bytes[1] = flagsOf(header);
  bytes[2] = stripeCount;
  writeU32(bytes, 4, header.epoch);
  writeU48(bytes, 8, header.seq);
  writeU48(bytes, 14, header.timestampMs);
  writeU16(bytes, 20, header.spanMs);
  writeU48(bytes, 22, header.clockReference ?? 0);
  writeU32(bytes, 28, header.randomAccessOffset ?? 0);
  writeU32(bytes, 32, header.pieceBytes);
  writeU32(bytes, 36, header.segment);
  bytes.set(header.previousHash, 40);
  bytes.set(header.chunkHashes, FIXED_BYTES);
  const problem = headerProblem(header);
  assert(problem === undefined, problem ?? "");
  return bytes;
}

/** Decodes a header of exactly the length for `stripeCount` stripes. The hashes are views of the input; the signature is not
 * verified. Refuses everything that is invalid regardless of the time, so a peer that forwards a refused header is at fault.
 * Throws `DecodeError`. */
export function decodeHeader(bytes: Uint8Array, format: HeaderFormat): PieceHeader {
  const { stripeCount, maxPieceBytes } = format;
  const expected = headerBytes(stripeCount);
  if (bytes.length !== expected) {
    throw new DecodeError(FORMAT, bytes.length, `expected ${expected} bytes, not ${bytes.length}`);
  }
  if (bytes[0] !== VERSION) throw new DecodeError(FORMAT, 0, `version ${bytes[0]} is not supported`);
  if (bytes[2] !== stripeCount)
    throw new DecodeError(FORMAT, 2, `expected ${stripeCount} stripes, not ${bytes[2]}`);
  const flags = bytes[1]!;
  const randomAccess = readU32(bytes, 28);
  const clock = readU48(bytes, 22);
  if (randomAccess !== 0 && !(flags & FLAG.randomAccess))
    throw new DecodeError(FORMAT, 28, "random access offset without its flag");
  if (clock !== 0 && !(flags & FLAG.clockReference))
    throw new DecodeError(FORMAT, 22, "clock reference without its flag");
  const header = {
    epoch: readU32(bytes, 4),
    seq: readU48(bytes, 8),
    timestampMs: readU48(bytes, 14),
    spanMs: readU16(bytes, 20),
    clockReference: flags & FLAG.clockReference ? clock : undefined,
    randomAccessOffset: flags & FLAG.randomAccess ? randomAccess : undefined,
    isSegmentStart: (flags & FLAG.segmentStart) !== 0,
    segment: readU32(bytes, 36),
    isDiscontinuity: (flags & FLAG.discontinuity) !== 0,
    isEnd: (flags & FLAG.end) !== 0,
    pieceBytes: readU32(bytes, 32),
    previousHash: bytes.subarray(40, FIXED_BYTES),
    chunkHashes: bytes.subarray(FIXED_BYTES, expected - SIGNATURE_BYTES),
  };
  if (header.pieceBytes > maxPieceBytes) {
    throw new DecodeError(
      FORMAT,
      32,
      `expected a piece of at most ${maxPieceBytes} bytes, not ${header.pieceBytes}`,
    );
  }
  const problem = headerProblem(header);
  if (problem !== undefined) throw new DecodeError(FORMAT, 1, problem);
  return header;
}

/** Properties of a stream that determine the format of its headers; a `LiveInfo` has them. */
interface HeaderFormat {
  readonly stripeCount: number;
  readonly maxPieceBytes: number;
}

function flagsOf(header: PieceHeader): number {
  return (
    (header.randomAccessOffset === undefined ? 0 : FLAG.randomAccess) |
    (header.isSegmentStart ? FLAG.segmentStart : 0) |
    (header.isDiscontinuity ? FLAG.discontinuity : 0) |
    (header.isEnd ? FLAG.end : 0) |
    (header.clockReference === undefined ? 0 : FLAG.clockReference)
  );
}

/** Returns the contradiction in a header, or undefined if there is none. */
function headerProblem(header: PieceHeader): string | undefined {
  const { spanMs, pieceBytes, clockReference = 0, randomAccessOffset } = header;
  if (spanMs > MAX_PIECE_SPAN_MS) return `expected a piece of at most ${MAX_PIECE_SPAN_MS} ms, not ${spanMs}`;
  // Therefore an epoch is never in the future unless its pieces are.
  if (header.timestampMs < header.epoch * 1000) return "timestamp before the epoch";
  if (clockReference >= MAX_CLOCK_REFERENCE) return "clock reference above 33 bits of 90 kHz";
  if (randomAccessOffset === undefined)
    return header.isSegmentStart ? "segment start without a random access point" : undefined;
  if (randomAccessOffset >= pieceBytes) return "random access point outside the piece";
  return randomAccessOffset % TS_PACKET_BYTES === 0 ? undefined : "random access point inside a packet";
}
