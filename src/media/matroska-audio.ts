import { concatBytes } from "../base/bytes.ts";
import { encodeUtf8 } from "../base/utf8.ts";

/** An audio track of {@link writeMatroskaAudio}. */
export interface MatroskaAudioTrack {
  /** `CodecID`, such as `A_AC3`. */
  readonly codecId: string;
  /** `CodecPrivate`. */
  readonly config: Uint8Array | undefined;
  readonly sampleRate: number;
  readonly channels: number;
}

/** Distance of the frames, in milliseconds. */
export const FRAME_DISTANCE_MS = 1000;

/**
 * Writes frames as a Matroska file (RFC 9559) for a decoder: frame `n` has the time `n` times {@link FRAME_DISTANCE_MS}, so that its samples
 * differ in time from those of other frames.
 */
export function writeMatroskaAudio(
  { codecId, config, sampleRate, channels }: MatroskaAudioTrack,
  frames: readonly Uint8Array[],
): Uint8Array<ArrayBuffer> {
  const rate = new Uint8Array(8);
  new DataView(rate.buffer).setFloat64(0, sampleRate);
  const audio = element(0xe1, element(0xb5, rate), element(0x9f, number(channels)));
  const track = element(
    0xae,
    element(0xd7, number(1)),
    element(0x73c5, number(1)),
    element(0x83, number(2)),
    element(0x86, encodeUtf8(codecId)),
    ...(config ? [element(0x63a2, config)] : []),
    audio,
  );
  const clusters = frames.map((frame, index) =>
    // A key frame of track 1, at the time of its cluster.
    element(
      0x1f43b675,
      element(0xe7, number(index * FRAME_DISTANCE_MS)),
      element(0xa3, Uint8Array.of(0x81, 0, 0, 0x80), frame),
    ),
  );
  return concatBytes([
    element(
      0x1a45dfa3,
      element(0x4282, encodeUtf8("matroska")),
      element(0x4287, number(4)),
      element(0x4285, number(2)),
    ),
    element(
      0x18538067,
      element(
        0x1549a966,
        element(0x2ad7b1, number(1_000_000)),
        element(0x4d80, encodeUtf8("-")),
        element(0x5741, encodeUtf8("-")),
      ),
      element(0x1654ae6b, track),
      ...clusters,
    ),
  ]);
}

/** An element with a size of 8 bytes, which is valid for all contents. */
function element(id: number, ...contents: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const idBytes = number(id);
  const size = new Uint8Array(8);
  new DataView(size.buffer).setUint32(
    4,
    contents.reduce((sum, { length }) => sum + length, 0),
  );
  size[0] = 1;
  return concatBytes([idBytes, size, ...contents]);
}

/** A number below 2^32 without leading zero bytes. */
function number(value: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value);
  return bytes.slice(Math.min(3, Math.clz32(value) >> 3));
}
