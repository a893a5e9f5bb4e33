import type { AbortSignalLike } from "../../base/byte-source.ts";
import type { Samples } from "./samples.ts";

/** A track to decode. */
export interface AudioSource {
  readonly codec: string;
  /** The decoder configuration of the container. */
  readonly config: Uint8Array | undefined;
  /** What the container states; used if the first frame is damaged, and for PCM. */
  readonly sampleRate: number | undefined;
  readonly channels: number | undefined;
}

/** One frame of AAC; `block` is the number of the block of 1024 samples that it decodes to, counted from the first one. */
export interface AacFrame {
  readonly block: number;
  readonly data: Uint8Array<ArrayBuffer>;
}

/** Encodes consecutive blocks of 1024 interleaved samples to AAC-LC. */
export interface BlockEncoder {
  /** The AudioSpecificConfig. */
  readonly config: Uint8Array<ArrayBuffer>;
  /** Copies the block. */
  add(block: Float32Array): void;
  /** Returns all frames. The frame of a block needs the two blocks after it; the first frame has the number -1. */
  finish(signal: AbortSignalLike): Promise<readonly AacFrame[]>;
  close(): void;
}

/** What decodes and encodes audio: the codecs of the engine, or ffmpeg. */
export interface AudioCodecs {
  /** Returns true if `decode` supports this codec. */
  decodes(codec: string): boolean;
  /**
   * Loads and warms up what a codec needs, while the first bytes of its track are fetched; without a codec, the encoder. Errors are
   * reported when it is used.
   */
  prepare(codec?: string): void;
  /**
   * Yields the samples of each frame, in order; undefined for a damaged one. They are valid until the next ones. Fails with `unsupported_codec`, or with the reason of
   * `signal`.
   */
  decode(
    source: AudioSource,
    frames: readonly Uint8Array[],
    signal: AbortSignalLike,
  ): AsyncIterable<Samples | undefined>;
  /** Rejects with `unsupported_codec` if the encoder does not support the format. */
  encoder(sampleRate: number, channels: 2 | 6): Promise<BlockEncoder>;
}
