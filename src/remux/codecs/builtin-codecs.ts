import type { AbortSignalLike } from "../../base/byte-source.ts";
import { AacEncoder } from "./aac-encoder.ts";
import { CodecModules, type CodecScript } from "./codec-module.ts";
import type { AudioCodecs, AudioSource, BlockEncoder } from "./codecs.ts";
import { isDecodable, loadDecoder, openDecoder } from "./decoders.ts";
import type { Samples } from "./samples.ts";

/** Frames that are decoded before the event loop continues: about 5 ms. */
const SLICE_FRAMES = 4;

/** The codecs of the engine: WebAssembly of packages, and its own. */
export class BuiltinCodecs implements AudioCodecs {
  readonly #modules: CodecModules;

  constructor(script: CodecScript) {
    this.#modules = new CodecModules(script);
  }

  decodes(codec: string): boolean {
    return isDecodable(codec);
  }

  prepare(codec: string): void {
    for (const loading of [loadDecoder(this.#modules, codec), this.#modules.ffmpeg("aac")])
      loading?.catch(() => {});
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
          await new Promise<void>((resolve) => setImmediate(resolve));
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
