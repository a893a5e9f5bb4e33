import { concatBytes } from "../../base/bytes.ts";
import { SluiceError } from "../../base/errors.ts";
import { PieceCutter } from "../../media/live-cut.ts";
import { pieceMsFor } from "../../media/live-rate.ts";
import { LiveTables } from "../../media/live-tables.ts";
import { TS_PACKET_BYTES } from "../../media/ts-packet.ts";
import type { MediaTrack } from "../../remux/contract.ts";
import { readPiece } from "../../remux/ts-interleave.ts";
import { describeTracks } from "../../remux/ts-tracks.ts";
import type { LiveInfo } from "../../wire/live/info.ts";
import { MAX_BYTES_PER_SECOND, MAX_LIVE_PIECE_BYTES, MAX_WINDOW_SECONDS } from "../../wire/live/limits.ts";
import type { LiveVariant } from "../../wire/live/variants.ts";
import type { TimedPackets } from "./broadcast-head.ts";

/** The properties of a stream that determine its pieces. */
export interface StreamShape {
  readonly bytesPerSecond: number;
  readonly hasPicture: boolean;
}

/** The shape of the built-in test pattern. */
export const PATTERN_SHAPE: StreamShape = { bytesPerSecond: 27_200, hasPicture: true };

/** The shape of a stream from a program like OBS, before it is known: 8 Mbit/s leaves room for usual settings. */
export const PUBLISHED_SHAPE: StreamShape = { bytesPerSecond: 1_000_000, hasPicture: true };

/** Minimum duration of an HLS segment: players buffer three. */
export const SEGMENT_MS = 2000;
/** A piece may have this multiple of the average size: pieces are cut by time, and keyframes are large. */
const PEAK_FACTOR = 8;
/** Leaves room for a higher bitrate later. */
const MIN_MAX_PIECE_BYTES = 128 * 1024;

/** Returns the permanent layout of a stream (live protocol: Transport file). */
export function liveInfoFor(
  name: string,
  publicKey: Uint8Array,
  { bytesPerSecond, hasPicture }: StreamShape,
  options: { readonly windowSeconds: number; readonly isPrivate: boolean },
): LiveInfo {
  const pieceMs = hasPicture ? pieceMsFor(bytesPerSecond) : 500;
  const peakBytes = Math.max(MIN_MAX_PIECE_BYTES, (PEAK_FACTOR * bytesPerSecond * pieceMs) / 1000);
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

/** Describes the quality of received packets: their rate, and what their streams are. */
export function qualityOf(received: readonly TimedPackets[]): LiveVariant {
  const { bytesPerSecond } = shapeOf(received);
  const tracks = tracksIn(concatBytes(received.map(({ packets }) => packets)));
  const video = tracks.find(({ kind }) => kind === "video");
  const audio = tracks.find(({ kind }) => kind === "audio");
  const codecs = [video, audio].flatMap((track) => (track ? [track.codecString] : []));
  const { width, height } = video ?? {};
  return {
    bytesPerSecond: Math.min(MAX_BYTES_PER_SECOND, Math.max(1, Math.round(bytesPerSecond))),
    ...(width && height && { width, height }),
    // An incomplete list would tell players that the rest is absent.
    codecs: codecs.every((codec) => codec !== undefined) ? (codecs as string[]) : [],
  };
}

function tracksIn(packets: Uint8Array): MediaTrack[] {
  try {
    return describeTracks(readPiece(packets).streams, packets, "und").map(({ described }) => described);
  } catch (thrown) {
    if (thrown instanceof SluiceError) return []; // No tables.
    throw thrown;
  }
}

/** Measures the bitrate of received packets, by the stream's own clock if it has one, and detects video. */
export function shapeOf(received: readonly TimedPackets[]): StreamShape {
  const cutter = new PieceCutter({
    pieceMs: 1000,
    maxPieceBytes: MAX_LIVE_PIECE_BYTES,
    segmentMs: SEGMENT_MS,
  });
  const tables = new LiveTables();
  let bytes = 0;
  for (const { packets, atMs } of received) {
    cutter.push(packets, atMs);
    bytes += packets.length;
    for (let at = 0; at + TS_PACKET_BYTES <= packets.length; at += TS_PACKET_BYTES) tables.push(packets, at);
  }
  const seconds = ((received.at(-1)?.atMs ?? 0) - (received[0]?.atMs ?? 0)) / 1000;
  const kind = tables.programme?.leading.kind;
  return {
    bytesPerSecond: cutter.bytesPerSecond ?? bytes / Math.max(1, seconds),
    // Without tables, video is assumed.
    hasPicture: kind !== "audio",
  };
}
