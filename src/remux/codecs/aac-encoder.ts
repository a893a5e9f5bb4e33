import { SluiceError } from "../../base/errors.ts";
import type { CodecModules, FfmpegEncoder } from "./codec-module.ts";
import type { AacFrame, BlockEncoder } from "./codecs.ts";
import { BLOCK_SAMPLES } from "./limiter.ts";

/** CHOICE(aac-bitrate): bits per second of AAC-LC. Half of it would take FFmpeg's encoder twice the time, because it searches longer. */
export const AAC_BITRATES = { 2: 256_000, 6: 768_000 } as const;

/** Encodes blocks of 1024 interleaved samples to AAC-LC. */
export class AacEncoder implements BlockEncoder {
  readonly #module: FfmpegEncoder;
  readonly #failed: () => void;
  readonly #context: number;
  readonly #frames: AacFrame[] = [];
  #blocks = 0;

  private constructor(module: FfmpegEncoder, context: number, failed: () => void) {
    this.#module = module;
    this.#context = context;
    this.#failed = failed;
  }

  /** Throws `SluiceError("unsupported_codec")` if the encoder does not support the format. */
  static async open(modules: CodecModules, sampleRate: number, channels: 2 | 6): Promise<AacEncoder> {
    const module = await modules.ffmpeg<FfmpegEncoder>("aac");
    const context = module._init_encoder(channels, sampleRate, AAC_BITRATES[channels]);
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

  /** Encodes a block. Throws `broken_media` if the code fails. */
  add(block: Float32Array): void {
    const module = this.#module;
    const context = this.#context;
    try {
      const input = module._get_encode_input_ptr(context, block.byteLength);
      new Float32Array(module.HEAPU8.buffer, input, block.length).set(block);
      module._send_frame(context, BigInt(this.#blocks++ * BLOCK_SAMPLES));
      for (let size = module._receive_packet(context); size > 0; size = module._receive_packet(context)) {
        const at = module._get_encoded_data(context);
        const number = Number(module._get_encoded_pts(context)) / BLOCK_SAMPLES;
        this.#frames.push({ block: number, data: module.HEAPU8.slice(at, at + size) });
      }
    } catch (error) {
      this.#failed();
      throw new SluiceError("broken_media", "the AAC encoder failed; request the segment again", {
        cause: error,
      });
    }
  }

  async finish(): Promise<readonly AacFrame[]> {
    return this.#frames;
  }

  close(): void {
    try {
      this.#module._close_encoder(this.#context);
    } catch {
      this.#failed();
    }
  }
}
