import type { AbortSignalLike } from "../../base/byte-source.ts";
import { SluiceError } from "../../base/errors.ts";
import { mergePmt } from "../../media/psi.ts";
import { leadingStream, type TsStream } from "../../media/ts-programme.ts";
import type { TsTables } from "../../media/ts-tables.ts";
import type { AudioSource } from "../codecs/codecs.ts";
import type { AudioConversion } from "../contract.ts";
import { frameAt } from "../packed-audio.ts";
import { cutSegment } from "../ts-cut.ts";
import { interleaveTs, readPiece } from "../ts-interleave.ts";
import { TsMuxer } from "../ts-muxer.ts";
import { isLatm, latmFrames } from "./latm-frames.ts";
import { type AudioTranscoder, converts, type TranscodePlan } from "./transcoder.ts";
import { type AudioUnit, splitFrames } from "./ts-audio.ts";
import { decoderOf, hasUnitFrames, type UnitFrames, unitFrames } from "./unit-frames.ts";

/** The audio of one segment. */
export interface SegmentAudio {
  /** The audio units of the half second before the segment; none at the start. */
  readonly before: readonly AudioUnit[];
  readonly own: readonly AudioUnit[];
  /** ISO 639-2, for the PMT. */
  readonly language: string;
  /** As the tables name it; undefined: found by its frames. */
  readonly codec?: string;
  readonly isLast: boolean;
}

/** Converts one audio track of the segments of a transport stream. */
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
    // Transport streams with Opus play in no browser, also in HLS.
    const conversion = codec === "opus" ? { ...this.#conversion, isHls: false } : this.#conversion;
    return converts(conversion, codec) && (isLatm(codec) || this.#transcoder.decodes(decoderOf(codec)));
  }

  /** Loads what the conversion of a codec needs. */
  prepare(codec: string): void {
    if (!isLatm(codec)) this.#transcoder.prepare(decoderOf(codec));
  }

  /** Returns the audio as AAC in a transport stream of its own; undefined if it has no frames that are converted. */
  async convert(audio: SegmentAudio, signal: AbortSignalLike): Promise<Uint8Array<ArrayBuffer> | undefined> {
    if (audio.codec !== undefined && isLatm(audio.codec)) return latmAsAdts(audio);
    const { language, isLast } = audio;
    const { source, before, own } = framesOf(audio);
    if (!source || !this.needs(source.codec)) return undefined;
    if (!this.#plan || !isEqualSource(this.#plan.source, source)) {
      this.#plan = await this.#transcoder.plan(source, before[0] ?? own[0], this.#conversion.channels);
    }
    if (!this.#plan) return undefined;
    const frames = await this.#transcoder.run(this.#plan, { before, own, isLast }, signal);
    if (frames.length === 0) return undefined;
    const { config, sampleRate } = this.#plan;
    return new TsMuxer([{ codec: "aac", language, config, sampleRate }]).segment(frames);
  }
}

/** Returns AAC of LATM, unchanged, in ADTS in a transport stream of its own; undefined if there is none. */
function latmAsAdts({ before, own, language }: SegmentAudio): Uint8Array<ArrayBuffer> | undefined {
  const audio = latmFrames(before, own);
  return audio && new TsMuxer([{ codec: "aac", language, ...audio }]).segment(audio.frames);
}

function framesOf({ codec, before, own }: SegmentAudio): UnitFrames {
  if (codec !== undefined && hasUnitFrames(codec)) return unitFrames(codec, before, own);
  const split = splitFrames(before, own);
  const source = split.codec && {
    ...{ codec: split.codec, config: undefined, sampleRate: undefined, channels: undefined },
  };
  return { ...split, source };
}

function isEqualSource(one: AudioSource, other: AudioSource): boolean {
  return one.codec === other.codec && one.sampleRate === other.sampleRate && one.channels === other.channels;
}

/** Returns `segment` with `audio` in place of all its audio. */
export function withAudio(
  segment: Uint8Array<ArrayBuffer>,
  audio: Uint8Array<ArrayBuffer>,
  language: string,
): Uint8Array<ArrayBuffer> {
  const hasVideo = readPiece(segment).streams.some(({ kind }) => kind === "video");
  return hasVideo ? interleaveTs(segment, [audio], language) : audio;
}

/** Returns audio frames, unchanged, as a transport stream of their own; undefined if there are none. */
export function audioAlone(audio: SegmentAudio): Uint8Array<ArrayBuffer> | undefined {
  if (audio.codec !== undefined && (hasUnitFrames(audio.codec) || isLatm(audio.codec))) return undefined;
  const { codec, own } = splitFrames(audio.before, audio.own);
  const [first] = own;
  if (codec === undefined || !first) return undefined;
  const { sampleRate } = frameAt(first.data, 0)!;
  return new TsMuxer([{ codec, language: audio.language, sampleRate }]).segment(own);
}

/** Returns a segment of whole packets without its audio. */
export function pictureAlone(segment: Uint8Array): Uint8Array<ArrayBuffer> {
  const { packets, tables, streams } = readPiece(segment);
  const leading = leadingStream(streams);
  if (!leading) throw new SluiceError("broken_media", "an MPEG-TS segment has neither video nor audio");
  const programme = withoutAudio({ tables, streams });
  // The tables are repeated for 8 s: segments are rarely longer, and begin with tables in any case.
  const cut = { ...programme, leading, bodyBytes: packets.length, isFirst: true, seconds: 8 };
  return cutSegment(cut, packets);
}

/** Returns the programme without its audio. */
export function withoutAudio<T extends { readonly tables: TsTables; readonly streams: readonly TsStream[] }>(
  programme: T,
): T {
  const { tables, streams } = programme;
  const audio = new Set(streams.filter(({ kind }) => kind === "audio").map(({ pid }) => pid));
  return {
    ...programme,
    tables: { ...tables, pmtSection: mergePmt(tables.pmtSection, audio, undefined) },
    streams: streams.filter(({ pid }) => !audio.has(pid)),
  };
}
