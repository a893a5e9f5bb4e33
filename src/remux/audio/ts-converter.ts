import type { AbortSignalLike } from "../../base/byte-source.ts";
import type { AudioConversion } from "../contract.ts";
import { interleaveTs } from "../ts-interleave.ts";
import { TsMuxer } from "../ts-muxer.ts";
import { isDecodable } from "./decoders.ts";
import { type AudioTranscoder, converts, type TranscodePlan } from "./transcoder.ts";
import { type AudioUnit, splitFrames } from "./ts-audio.ts";

/** One segment to convert. */
export interface TsConversion {
  readonly segment: Uint8Array<ArrayBuffer>;
  /** The audio units of the half second before the segment; none at the start. */
  readonly before: readonly AudioUnit[];
  readonly own: readonly AudioUnit[];
  /** ISO 639-2, for the PMT. */
  readonly language: string;
  readonly hasVideo: boolean;
  readonly isLast: boolean;
}

/** Converts the audio of the segments of one transport stream; the picture passes unchanged. */
export class TsConverter {
  readonly #transcoder: AudioTranscoder;
  readonly #conversion: AudioConversion;
  #plan: TranscodePlan | undefined;

  constructor(transcoder: AudioTranscoder, conversion: AudioConversion) {
    this.#transcoder = transcoder;
    this.#conversion = conversion;
  }

  /** Returns true if audio with this codec is converted. */
  needs(codec: string): boolean {
    return converts(this.#conversion, codec) && isDecodable(codec);
  }

  /** Returns the segment with AAC in place of all its audio; unchanged if it has no frames that are converted. */
  async convert(job: TsConversion, signal: AbortSignalLike): Promise<Uint8Array<ArrayBuffer>> {
    const { segment, language, isLast } = job;
    const { codec, before, own } = splitFrames(job.before, job.own);
    if (codec === undefined || !this.needs(codec)) return segment;
    if (this.#plan?.source.codec !== codec) {
      const source = { codec, config: undefined, sampleRate: undefined, channels: undefined };
      this.#plan = await this.#transcoder.plan(source, before[0] ?? own[0], this.#conversion.channels);
    }
    if (!this.#plan) return segment;
    const frames = await this.#transcoder.run(this.#plan, { before, own, isLast }, signal);
    if (frames.length === 0) return segment;
    const { config, sampleRate } = this.#plan;
    const audio = new TsMuxer([{ codec: "aac", language, config, sampleRate }]).segment(frames);
    return job.hasVideo ? interleaveTs(segment, [audio], language) : audio;
  }
}
