import type { ByteRange } from "../../src/base/range.ts";
import type { Media, MediaPart, RemuxFormat } from "../../src/remux/contract.ts";
import { pieceStream, streamBytes } from "../../src/remux/piece-stream.ts";

/** One whole segment as MPEG-TS. */
export function tsSegment(media: Media, index: number, signal?: AbortSignal, part?: MediaPart) {
  return segmentOf(media, "ts", index, signal, part);
}

/** One whole segment as fragmented MP4. */
export function fmp4Segment(media: Media, index: number, signal?: AbortSignal, part?: MediaPart) {
  return segmentOf(media, "fmp4", index, signal, part);
}

async function segmentOf(
  media: Media,
  format: RemuxFormat,
  index: number,
  signal?: AbortSignal,
  part?: MediaPart,
) {
  const remux = await media.remux(format, index, index + 1, signal, part);
  return streamBytes(pieceStream(remux, { signal }).pipeThrough(remux.remuxer));
}

/** A range of the bytes of a file as one MPEG-TS of known size. */
export async function rangeOfTs(media: Media, range: ByteRange) {
  const remux = await (await media.seekableTs!())!.remux(range);
  return streamBytes(pieceStream(remux).pipeThrough(remux.remuxer));
}
