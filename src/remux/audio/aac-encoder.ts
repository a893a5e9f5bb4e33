import { SluiceError } from "../../base/errors.ts";
import type { CodecModules, FfmpegEncoder } from "./codec-module.ts";
import { BLOCK_SAMPLES } from "./limiter.ts";

/** CHOICE(aac-bitrate): bits per second of AAC-LC. */
const BITRATES = { 2: 160_000, 6: 384_000 } as const;

/** One frame of AAC; `block` is the number of the block of 1024 samples that it decodes to, counted from the first one. */
export interface AacFrame {
  readonly block: number;
  readonly data: Uint8Array<ArrayBuffer>;
}

/** Encodes blocks of 1024 interleaved samples to AAC-LC. */
export class AacEncoder {
  readonly #module: FfmpegEncoder;
  readonly #failed: () => void;
  readonly #context: number;
  #blocks = 0;

  private constructor(module: FfmpegEncoder, context: number, failed: () => void) {
    this.#module = module;
    this.#context = context;
    this.#failed = failed;
  }

  /** Throws `SluiceError("unsupported_codec")` if the encoder does not support the format. */
  static async open(modules: CodecModules, sampleRate: number, channels: 2 | 6): Promise<AacEncoder> {
    const module = await modules.ffmpeg<FfmpegEncoder>("aac");
    const context = module._init_encoder(channels, sampleRate, BITRATES[channels]);
    if (context === 0 || module._get_encoder_frame_size(context) !== BLOCK_SAMPLES)
      throw new SluiceError(
        "unsupported_codec",
        `cannot encode AAC with ${channels} channels at ${sampleRate} Hz`,
      );
    return new AacEncoder(module, context, () => modules.discard("aac"));
  }

  /** The AudioSpecificConfig. */
  get config(): Uint8Array<ArrayBuffer> {
    const at = this.#module._get_encoder_extradata(this.#context);
    return this.#module.HEAPU8.slice(at, at + this.#module._get_encoder_extradata_size(this.#context));
  }

  /** Encodes a block. A frame is returned two blocks after the block that it decodes to; the first one has the number -1. */
  encode(block: Float32Array): AacFrame[] {
    const module = this.#module;
    const context = this.#context;
    const frames: AacFrame[] = [];
    try {
      const input = module._get_encode_input_ptr(context, block.byteLength);
      new Float32Array(module.HEAPU8.buffer, input, block.length).set(block);
      module._send_frame(context, BigInt(this.#blocks++ * BLOCK_SAMPLES));
      for (let size = module._receive_packet(context); size > 0; size = module._receive_packet(context)) {
        const at = module._get_encoded_data(context);
        const block = Number(module._get_encoded_pts(context)) / BLOCK_SAMPLES;
        frames.push({ block, data: module.HEAPU8.slice(at, at + size) });
      }
    } catch (error) {
      this.#failed();
      throw new SluiceError("broken_media", "the AAC encoder failed; request the segment again", {
        cause: error,
      });
    }
    return frames;
  }

  close(): void {
    try {
      this.#module._close_encoder(this.#context);
    } catch {
      this.#failed();
    }
  }
}
