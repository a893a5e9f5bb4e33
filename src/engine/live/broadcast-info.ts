import { PieceCutter } from "../../media/live-cut.ts";
import { pieceMsFor } from "../../media/live-rate.ts";
import { LiveTables } from "../../media/live-tables.ts";
import { TS_PACKET_BYTES } from "../../media/ts-packet.ts";
import type { LiveInfo } from "../../wire/live-info.ts";
import { MAX_BYTES_PER_SECOND, MAX_LIVE_PIECE_BYTES, MAX_WINDOW_SECONDS } from "../../wire/live-limits.ts";
import type { CameAt } from "./broadcast-head.ts";

/** What decides how a stream is cut. */
export interface StreamShape {
  readonly bytesPerSecond: number;
  readonly hasPicture: boolean;
}

/** What our own test pattern has. */
export const PATTERN_SHAPE: StreamShape = { bytesPerSecond: 27_200, hasPicture: true };

/** The least duration of a segment of HLS: players hold three. */
const SEGMENT_MS = 2000;
/** A piece may be so many times the usual one, since keyframes come in one: pieces close by time. */
const PEAK = 8;
/** So that a stream whose rate rises later has room. */
const LEAST_MAX_PIECE_BYTES = 128 * 1024;

/** How a stream is cut for good (live protocol: Transport file). Private is what only its relays are told. */
export function liveInfoFor(
  name: string,
  publicKey: Uint8Array,
  { bytesPerSecond, hasPicture }: StreamShape,
  options: { readonly windowSeconds: number; readonly isPrivate: boolean },
): LiveInfo {
  const pieceMs = hasPicture ? pieceMsFor(bytesPerSecond) : 500;
  const peakBytes = Math.max(LEAST_MAX_PIECE_BYTES, (PEAK * bytesPerSecond * pieceMs) / 1000);
  return {
    name,
    publicKey,
    stripeCount: hasPicture ? (pieceMs === 125 ? 16 : 8) : 4,
    pieceMs,
    maxPieceBytes: Math.min(MAX_LIVE_PIECE_BYTES, 2 ** Math.ceil(Math.log2(peakBytes))),
    bytesPerSecond: Math.min(MAX_BYTES_PER_SECOND, Math.max(1, Math.round(bytesPerSecond))),
    segmentMs: SEGMENT_MS,
    windowSeconds: Math.min(MAX_WINDOW_SECONDS, Math.max(0, Math.round(options.windowSeconds))),
    container: "mpegts",
    isPrivate: options.isPrivate,
  };
}

/** The rate of what came, by the stream's own clock where it has one, and whether there is a picture. */
export function shapeOf(came: readonly CameAt[]): StreamShape {
  const cutter = new PieceCutter({
    pieceMs: 1000,
    maxPieceBytes: MAX_LIVE_PIECE_BYTES,
    segmentMs: SEGMENT_MS,
  });
  const tables = new LiveTables();
  let bytes = 0;
  for (const { packets, atMs } of came) {
    cutter.push(packets, atMs);
    bytes += packets.length;
    for (let at = 0; at + TS_PACKET_BYTES <= packets.length; at += TS_PACKET_BYTES) tables.push(packets, at);
  }
  const seconds = ((came.at(-1)?.atMs ?? 0) - (came[0]?.atMs ?? 0)) / 1000;
  const kind = tables.programme?.leading.kind;
  return {
    bytesPerSecond: cutter.bytesPerSecond ?? bytes / Math.max(1, seconds),
    // Where the tables did not come, nothing speaks against one.
    hasPicture: kind !== "audio",
  };
}
