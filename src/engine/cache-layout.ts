import type { SwarmLayout } from "../swarm/contract.ts";
import { pieceBytesOf } from "../swarm/piece-check.ts";

/** Pieces of one content are kept in files of about this size: few enough to open, small enough to give up one by one. */
const SEGMENT_BYTES = 16 * 1024 * 1024;

/** Where the pieces of one content lie on disk. */
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

/** The places of the pieces of `layout`. Pieces larger than a segment have one each to themselves. */
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

/** Where `piece` begins in its segment's file. */
export function offsetInSegment(layout: CacheLayout, piece: number): number {
  return (piece % layout.piecesPerSegment) * layout.pieceLength;
}

/** The length of `piece`. */
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
