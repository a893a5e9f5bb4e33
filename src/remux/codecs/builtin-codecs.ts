import { yieldToLoop } from "../../async/event-loop.ts";
import type { AbortSignalLike } from "../../base/byte-source.ts";
import { after } from "../../base/time.ts";
import type { Clock } from "../../runtime/contract.ts";
import { AacEncoder } from "./aac-encoder.ts";
import { CodecModules, type CodecPrograms } from "./codec-module.ts";
import type { AudioCodecs, AudioSource, BlockEncoder } from "./codecs.ts";
import { isDecodable, loadDecoder, openDecoder } from "./decoders.ts";
import { BLOCK_SAMPLES } from "./limiter.ts";
import type { Samples } from "./samples.ts";

/** Frames that are decoded before the event loop continues: about 5 ms. */
const SLICE_FRAMES = 4;
/** Blocks of noise that are encoded in advance: the first ones take ten times as long, until the runtime has compiled the encoder. */
const WARM_UP_BLOCKS = 16;
/** A block is encoded in advance if a timer of this length is on time, so that the engine has nothing else to do. */
const IDLE_MS = 2;
const WARM_UP_ATTEMPTS = 100;

/** The codecs of the engine: WebAssembly of packages, and its own. */
export class BuiltinCodecs implements AudioCodecs {
  readonly #modules: CodecModules;
  readonly #clock: Clock | undefined;
  /** True as soon as the encoder is used, or is being warmed up. */
  #isWarm = false;
  /** True as soon as a segment is converted. */
  #isUsed = false;

  /** Without a clock, nothing is warmed up. */
  constructor(programs: CodecPrograms, clock?: Clock) {
    this.#modules = new CodecModules(programs);
    this.#clock = clock;
  }

  decodes(codec: string): boolean {
    return isDecodable(codec);
  }

  prepare(codec?: string): void {
    const decoder = codec === undefined ? undefined : loadDecoder(this.#modules, codec);
    for (const loading of [decoder, this.#clock && this.#warmUp(this.#clock)]) loading?.catch(() => {});
  }

  async #warmUp(clock: Clock): Promise<void> {
    if (this.#isWarm) return;
    this.#isWarm = true;
    const encoder = await AacEncoder.open(this.#modules, 48000, 2);
    const noise = () => 0.3 * (Math.random() - 0.5);
    try {
      let blocks = 0;
      for (let attempt = 0; attempt < WARM_UP_ATTEMPTS && blocks < WARM_UP_BLOCKS; attempt++) {
        const due = after(clock.now(), IDLE_MS);
        await new Promise<void>((resolve) => clock.at(due, resolve));
        if (this.#isUsed) return;
        if (clock.now() - due > IDLE_MS) continue;
        encoder.add(Float32Array.from({ length: 2 * BLOCK_SAMPLES }, noise));
        blocks++;
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
        // A plan needs one frame.
        if (index > 0) this.#isUsed = true;
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
