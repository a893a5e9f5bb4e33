import { eitherSignal } from "../../async/abort.ts";
import { assert } from "../../base/assert.ts";
import type { AbortSignalLike } from "../../base/byte-source.ts";
import { concatBytes } from "../../base/bytes.ts";
import { SluiceError } from "../../base/errors.ts";
import { TICKS_PER_SECOND } from "../../media/timestamps.ts";
import { alignPackets } from "../../media/ts-sync.ts";
import type { AudioConversion, MediaPart, Remux, SoundSlice } from "../contract.ts";
import { Remuxer } from "../remuxer.ts";
import { sliceBounds } from "../segment-plan.ts";
import type { TsBoundaries } from "../ts-boundaries.ts";
import { AFTER_STEP_BYTES, cutSegment, hasAllStarts, STRADDLE_BYTES } from "../ts-cut.ts";
import type { TsHead } from "../ts-head.ts";
import type { TsReader } from "../ts-reader.ts";
import type { TsTrack } from "../ts-tracks.ts";
import { isLatm, isUnsupportedLatm } from "./latm-frames.ts";
import { type AudioTranscoder, PREROLL_SECONDS } from "./transcoder.ts";
import { audioUnits, firstFrom, lastUnits } from "./ts-audio.ts";
import { audioAlone, type SegmentAudio, TsConverter, withAudio } from "./ts-converter.ts";

/** Limits of the bytes that are read before a segment for its audio. */
const MIN_PREROLL_BYTES = 256 * 1024;
const MAX_PREROLL_BYTES = 8 * 1024 * 1024;
/** Audio is up to a second behind the picture that is next to it in the file. */
const CONVERSION_SECONDS = 2;
/** Enough for the first part of a frame that continues in the segment. */
const FRAME_SECONDS = 0.5;

/** A track, and its conversion to AAC if the request has it converted. */
export interface TsFileTrack extends TsTrack {
  readonly converter?: TsConverter;
}

/** Describes the tracks as they are delivered: those that the request converts as AAC. `packets` is the head of the file. */
export function convertedTracks(
  tracks: readonly TsTrack[],
  packets: Uint8Array,
  conversion: AudioConversion | undefined,
  transcoder: AudioTranscoder | undefined,
): readonly TsFileTrack[] {
  if (!conversion || !transcoder) return tracks;
  return tracks.map((track) => {
    const { described } = track;
    const converter = new TsConverter(transcoder, conversion);
    if (described.kind !== "audio" || !converter.needs(described.codec)) return track;
    const convertedFrom = described.codec;
    if (isLatm(convertedFrom) && isUnsupportedLatm(audioUnits(packets, track.pid))) return track;
    converter.prepare(convertedFrom);
    return {
      ...track,
      described: { ...described, codec: "aac", codecString: "mp4a.40.2", convertedFrom },
      converter,
    };
  });
}

/** The parts of a {@link TsFileAudio}. */
interface TsFileAudioParts {
  readonly reader: TsReader;
  readonly head: TsHead;
  readonly boundaries: TsBoundaries;
  readonly tracks: readonly TsFileTrack[];
  readonly segments: number;
  readonly durationSeconds: number;
  /** Fires when the file is closed. */
  readonly closed: AbortSignal;
}

/** A segment between two byte positions. */
interface CutSegment {
  readonly index: number;
  readonly start: number;
  readonly end: number;
}

/** A segment with the packets around it. */
interface ReadSegment extends CutSegment {
  readonly body: Uint8Array;
  /** The rest of the audio units that begin in the segment. */
  readonly after: Uint8Array;
}

/** Segments of a transport stream file with converted audio, or with one audio track alone. */
export class TsFileAudio {
  readonly #parts: TsFileAudioParts;
  readonly #first: TsFileTrack | undefined;

  constructor(parts: TsFileAudioParts) {
    this.#parts = parts;
    this.#first = parts.tracks.find(({ described }) => described.kind === "audio");
  }

  /** Returns true if a part is not a cut of the file. */
  isMadeFor(part: MediaPart): boolean {
    return typeof part === "object" || (part === "all" && this.#first?.converter !== undefined);
  }

  /** Makes segment by segment. The stage holds one segment, because its audio is converted as a whole. */
  remux(from: number, to: number, part: MediaPart, signal?: AbortSignal): Remux {
    const { boundaries, reader, head, closed } = this.#parts;
    const stopped = eitherSignal(signal, closed);
    const { audio, slice } = typeof part === "object" ? part : {};
    const track = audio === undefined ? undefined : this.#parts.tracks[audio];
    if (typeof part === "object" && track?.described.kind !== "audio")
      throw new SluiceError("no_such_segment", "the file has no such track");
    const planned: CutSegment[] = [];
    let chunks: Uint8Array[] = [];
    let bytes = 0;
    return {
      source: reader.source,
      closed,
      ranges: async function* (signal) {
        for (let index = from; index < to; index++) {
          const start = await boundaries.find(index, signal);
          const end = await boundaries.find(index + 1, signal);
          if (end <= start) continue;
          planned.push({ index, start, end });
          yield { start, end, until: end };
        }
      },
      remuxer: new Remuxer({
        transform: async (input) => {
          chunks.push(input);
          bytes += input.length;
          const [segment] = planned;
          if (!segment || bytes < segment.end - segment.start) return [];
          const body = alignPackets(concatBytes(chunks), head.layout.stride, false, true).packets;
          planned.shift();
          chunks = [];
          bytes = 0;
          const read = { ...segment, body, after: await this.#after(segment.end, stopped) };
          return [await (track ? this.#alone(track, read, slice, stopped) : this.#converted(read, stopped))];
        },
      }),
    };
  }

  /** Returns a segment with the first audio track converted, in place of all audio. */
  async #converted(segment: ReadSegment, signal: AbortSignalLike): Promise<Uint8Array<ArrayBuffer>> {
    const { boundaries, head } = this.#parts;
    const { index, body, after } = segment;
    const ticks = boundaries.startTicks(index + 1) - boundaries.startTicks(index);
    const seconds = Math.max(0, ticks) / TICKS_PER_SECOND;
    const { tables, streams, leading } = head;
    const cut = { tables, streams, leading, bodyBytes: body.length, isFirst: index === 0, seconds };
    const whole = cutSegment(cut, concatBytes([body, after]));
    const track = this.#first;
    assert(track?.converter, "only audio that is converted is read here");
    const audio = await this.#audioOf(track, segment, CONVERSION_SECONDS, signal);
    const aac = await track.converter.convert(audio, signal);
    return aac ? withAudio(whole, aac, audio.language) : whole;
  }

  /** Returns one audio track of a segment; no packets if it has no frames there. */
  async #alone(
    track: TsFileTrack,
    segment: ReadSegment,
    slice: SoundSlice | undefined,
    signal: AbortSignalLike,
  ): Promise<Uint8Array<ArrayBuffer>> {
    const { converter } = track;
    const seconds = converter ? CONVERSION_SECONDS : FRAME_SECONDS;
    const whole = await this.#audioOf(track, segment, seconds, signal);
    const audio = slice ? this.#sliceOf(whole, slice) : whole;
    return (converter ? await converter.convert(audio, signal) : audioAlone(audio)) ?? new Uint8Array(0);
  }

  #sliceOf(audio: SegmentAudio, slice: SoundSlice): SegmentAudio {
    const { boundaries } = this.#parts;
    const { segment } = slice;
    const [start, end] = [segment, segment + 1].map(
      (index) => boundaries.firstDts + boundaries.startTicks(index),
    );
    const [from, to] = sliceBounds(start!, end!, slice).map((ticks) => firstFrom(audio.own, ticks));
    const own = audio.own.slice(from, to);
    const earlier = audio.own.slice(0, from);
    const before = earlier.length > 0 ? lastUnits(earlier, 2 * PREROLL_SECONDS) : audio.before;
    return { ...audio, before, own, isLast: audio.isLast && to === audio.own.length };
  }

  async #audioOf(
    { pid, described: { language, codec, convertedFrom } }: TsFileTrack,
    { index, start, body, after }: ReadSegment,
    prerollSeconds: number,
    signal: AbortSignalLike,
  ): Promise<SegmentAudio> {
    const from = Math.max(0, start - this.#prerollBytes(prerollSeconds));
    const preroll = start > from ? await this.#parts.reader.packets(from, start, signal) : new Uint8Array(0);
    const units = audioUnits(concatBytes([preroll, body, after]), pid);
    const ownEnd = preroll.length + body.length;
    return {
      before: lastUnits(
        units.filter(({ at }) => at < preroll.length),
        2 * PREROLL_SECONDS,
      ),
      own: units.filter(({ at }) => at >= preroll.length && at < ownEnd),
      language,
      codec: convertedFrom ?? codec,
      isLast: index + 1 === this.#parts.segments,
    };
  }

  #prerollBytes(seconds: number): number {
    const { reader, durationSeconds } = this.#parts;
    const bytes = (seconds * reader.source.size) / Math.max(1, durationSeconds);
    return Math.ceil(Math.min(MAX_PREROLL_BYTES, Math.max(MIN_PREROLL_BYTES, bytes)));
  }

  async #after(end: number, signal: AbortSignalLike): Promise<Uint8Array> {
    const { reader, head } = this.#parts;
    const { size } = reader.source;
    for (let length = AFTER_STEP_BYTES; ; length *= 2) {
      const to = Math.min(size, end + Math.min(length, STRADDLE_BYTES));
      const after = to > end ? await reader.packets(end, to, signal) : new Uint8Array(0);
      if (to === size || length >= STRADDLE_BYTES || hasAllStarts(head, after)) return after;
    }
  }
}
