import type { ByteRange } from "../../src/base/range.ts";
import type { Media, RemuxFormat } from "../../src/remux/contract.ts";
import { pieceStream, streamBytes } from "../../src/remux/piece-stream.ts";

/** One whole segment as MPEG-TS. */
export function tsSegment(media: Media, index: number, signal?: AbortSignal) {
  return segmentOf(media, "ts", index, signal);
}

/** One whole segment as fragmented MP4. */
export function fmp4Segment(media: Media, index: number, signal?: AbortSignal) {
  return segmentOf(media, "fmp4", index, signal);
}

async function segmentOf(media: Media, format: RemuxFormat, index: number, signal?: AbortSignal) {
  const remux = await media.remux(format, index, index + 1, signal);
  return streamBytes(pieceStream(remux, { signal }).pipeThrough(remux.remuxer));
}

/** A range of the bytes of a file as one MPEG-TS of known size. */
export async function rangeOfTs(media: Media, range: ByteRange) {
  const remux = await (await media.seekableTs!())!.remux(range);
  return streamBytes(pieceStream(remux).pipeThrough(remux.remuxer));
}
