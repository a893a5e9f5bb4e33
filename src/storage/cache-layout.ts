import type { SwarmLayout } from "../protocol/swarm/contract.ts";
import { pieceBytesOf } from "../protocol/swarm/piece-check.ts";

/** Approximate size of a segment file: few enough files to keep open, small enough to evict one by one. */
const SEGMENT_BYTES = 16 * 1024 * 1024;

/** Positions of the pieces of one content in its segment files. */
export interface CacheLayout {
  readonly pieceLength: number;
  readonly pieceCount: number;
  /** Bytes of the whole content. */
  readonly length: number;
  readonly piecesPerSegment: number;
  readonly segmentCount: number;
  /** As in `SwarmLayout`. */
  readonly shortPieces?: ReadonlyMap<number, number>;
}

/** The cache layout for a swarm layout. A piece larger than a segment gets a segment of its own. */
export function cacheLayout({ pieceLength, pieceCount, length, shortPieces }: SwarmLayout): CacheLayout {
  const piecesPerSegment = Math.max(1, Math.floor(SEGMENT_BYTES / pieceLength));
  const segmentCount = Math.ceil(pieceCount / piecesPerSegment);
  const places = { pieceLength, pieceCount, length, piecesPerSegment, segmentCount };
  return shortPieces ? { ...places, shortPieces } : places;
}

/** The segment that holds `piece`. */
export function segmentOf(layout: CacheLayout, piece: number): number {
  return Math.floor(piece / layout.piecesPerSegment);
}

/** The offset of `piece` in its segment file, in bytes. */
export function offsetInSegment(layout: CacheLayout, piece: number): number {
  return (piece % layout.piecesPerSegment) * layout.pieceLength;
}

/** The length of `piece` in bytes. */
export function pieceBytes(layout: CacheLayout, piece: number): number {
  return pieceBytesOf(layout, piece);
}

/** The pieces of a segment, in order. */
export function* piecesOfSegment(layout: CacheLayout, segment: number): Iterable<number> {
  const first = segment * layout.piecesPerSegment;
  const end = Math.min(layout.pieceCount, first + layout.piecesPerSegment);
  for (let piece = first; piece < end; piece++) yield piece;
}

/** The name of a segment's file in the folder of its content. */
export function segmentName(segment: number): string {
  return `${segment}.pieces`;
}
