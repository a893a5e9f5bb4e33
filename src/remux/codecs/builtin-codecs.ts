import { yieldToLoop } from "../../async/event-loop.ts";
import type { AbortSignalLike } from "../../base/byte-source.ts";
import { AacEncoder } from "./aac-encoder.ts";
import { CodecModules, type CodecScript } from "./codec-module.ts";
import type { AudioCodecs, AudioSource, BlockEncoder } from "./codecs.ts";
import { isDecodable, loadDecoder, openDecoder } from "./decoders.ts";
import { BLOCK_SAMPLES } from "./limiter.ts";
import type { Samples } from "./samples.ts";

/** Frames that are decoded before the event loop continues: about 5 ms. */
const SLICE_FRAMES = 4;
/** Blocks of noise that are encoded in advance: the first ones take ten times as long, until the runtime has compiled the encoder. */
const WARM_UP_BLOCKS = 16;

/** The codecs of the engine: WebAssembly of packages, and its own. */
export class BuiltinCodecs implements AudioCodecs {
  readonly #modules: CodecModules;
  /** True as soon as the encoder has been used, or is being warmed up. */
  #isWarm = false;

  constructor(script: CodecScript) {
    this.#modules = new CodecModules(script);
  }

  decodes(codec: string): boolean {
    return isDecodable(codec);
  }

  prepare(codec: string): void {
    for (const loading of [loadDecoder(this.#modules, codec), this.#warmUp()]) loading?.catch(() => {});
  }

  async #warmUp(): Promise<void> {
    if (this.#isWarm) return;
    this.#isWarm = true;
    const encoder = await AacEncoder.open(this.#modules, 48000, 2);
    try {
      for (let block = 0; block < WARM_UP_BLOCKS; block++) {
        encoder.add(Float32Array.from({ length: 2 * BLOCK_SAMPLES }, () => 0.3 * (Math.random() - 0.5)));
        await yieldToLoop();
      }
    } finally {
      encoder.close();
    }
  }

  async *decode(
    source: AudioSource,
    frames: readonly Uint8Array[],
    signal: AbortSignalLike,
  ): AsyncGenerator<Samples | undefined> {
    const decoder = await openDecoder(this.#modules, source);
    try {
      for (const [index, frame] of frames.entries()) {
        if (index % SLICE_FRAMES === SLICE_FRAMES - 1) {
          await yieldToLoop();
          if (signal.aborted) throw signal.reason;
        }
        yield decoder?.decode(frame);
      }
    } finally {
      decoder?.close();
    }
  }

  encoder(sampleRate: number, channels: 2 | 6): Promise<BlockEncoder> {
    return AacEncoder.open(this.#modules, sampleRate, channels);
  }
}
