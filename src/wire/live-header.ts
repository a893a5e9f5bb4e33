import { assert } from "../base/assert.ts";
import { readU16, readU32, readU48, writeU16, writeU32, writeU48 } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";
import { SIGNATURE_BYTES } from "../base/signature.ts";
import { MAX_PIECE_SPAN_MS } from "./live-limits.ts";

/** What the source says about a piece. */
export interface PieceHeader {
  /** UNIX seconds of when the source last lost its state; pieces are ordered by epoch, then by number. */
  readonly epoch: number;
  /** The piece's number, one more than that of the piece before (48 bits). */
  readonly seq: number;
  /** The source's wall clock when the last byte of the piece came, in UNIX ms (48 bits). */
  readonly timestampMs: number;
  /** How much time the piece spans. */
  readonly spanMs: number;
  /** The first program clock reference in the piece, in ticks of 27 MHz; undefined where it has none. */
  readonly clockReference: number | undefined;
  /** Where a player can begin (tables, then a keyframe), in bytes from the start of the piece; undefined for nowhere. */
  readonly randomAccessOffset: number | undefined;
  /** A segment of HLS begins at the random access point. */
  readonly isSegmentStart: boolean;
  /** The number of the segment that begins in this piece, or else goes on in it (32 bits); before the first of all, of
   * the one to come. */
  readonly segment: number;
  /** Clocks or counters of the media jump at the start of this piece. */
  readonly isDiscontinuity: boolean;
  /** The source ends with this piece, and means to. */
  readonly isEnd: boolean;
  /** All bytes of the piece. */
  readonly pieceBytes: number;
  /** The hash of the whole header before (20 bytes); zeros in the first of an epoch. */
  readonly previousHash: Uint8Array;
  /** The hash of each stripe's chunk, 20 bytes each, one after another. */
  readonly chunkHashes: Uint8Array;
}

/** What precedes the hashes of the chunks. */
const FIXED_BYTES = 60;
/** A hash is the first 20 bytes of a SHA-256. */
export const LIVE_HASH_BYTES = 20;
const FORMAT = "piece header";
const VERSION = 1;
const FLAG = { randomAccess: 1, segmentStart: 2, discontinuity: 4, end: 8, clockReference: 16 } as const;
const MAX_CLOCK_REFERENCE = 2 ** 33 * 300;
const TS_PACKET_BYTES = 188;

/** The size of a header with its signature: 60 bytes, a hash for each stripe, the signature. */
export function headerBytes(stripeCount: number): number {
  return FIXED_BYTES + LIVE_HASH_BYTES * stripeCount + SIGNATURE_BYTES;
}

/** A header with room for its signature at the end. What it says must be in its limits. */
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

/** Reads a header of exactly the length that so many stripes need. Its hashes are views on the input; the signature is
 * not looked at. All that can be wrong without a clock is refused, so that whoever hands on what is refused is at fault.
 * Throws `DecodeError`. */
export function decodeHeader(bytes: Uint8Array, format: HeaderFormat): PieceHeader {
  const { stripeCount, maxPieceBytes } = format;
  const expected = headerBytes(stripeCount);
  if (bytes.length !== expected) {
    throw new DecodeError(FORMAT, bytes.length, `expected ${expected} bytes, not ${bytes.length}`);
  }
  if (bytes[0] !== VERSION)
    throw new DecodeError(FORMAT, 0, `version ${bytes[0]}, which this program cannot read`);
  if (bytes[2] !== stripeCount)
    throw new DecodeError(FORMAT, 2, `expected ${stripeCount} stripes, not ${bytes[2]}`);
  const flags = bytes[1]!;
  const randomAccess = readU32(bytes, 28);
  const clock = readU48(bytes, 22);
  if (randomAccess !== 0 && !(flags & FLAG.randomAccess))
    throw new DecodeError(FORMAT, 28, "an offset to nothing");
  if (clock !== 0 && !(flags & FLAG.clockReference))
    throw new DecodeError(FORMAT, 22, "a clock that is not there");
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
      `a piece of ${header.pieceBytes} bytes, at most ${maxPieceBytes} expected`,
    );
  }
  const problem = headerProblem(header);
  if (problem !== undefined) throw new DecodeError(FORMAT, 1, problem);
  return header;
}

/** What must be known of a stream to read its headers; a `LiveInfo` has it. */
export interface HeaderFormat {
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

/** What in a header contradicts itself, or undefined. */
function headerProblem(header: PieceHeader): string | undefined {
  const { spanMs, pieceBytes, clockReference = 0, randomAccessOffset } = header;
  if (spanMs > MAX_PIECE_SPAN_MS) return `a piece of ${spanMs} ms, at most ${MAX_PIECE_SPAN_MS} expected`;
  // So nobody's epoch lies in the future whose pieces do not.
  if (header.timestampMs < header.epoch * 1000) return "a piece from before its epoch";
  if (clockReference >= MAX_CLOCK_REFERENCE) return "a clock reference beyond 33 bits of 90 kHz";
  if (randomAccessOffset === undefined)
    return header.isSegmentStart ? "a segment that begins nowhere" : undefined;
  if (randomAccessOffset >= pieceBytes) return "a random access point outside the piece";
  return randomAccessOffset % TS_PACKET_BYTES === 0 ? undefined : "a random access point within a packet";
}
