import { eitherSignal, withLinkedAbort } from "../async/abort.ts";
import { Slots } from "../async/slots.ts";
import { assert } from "../base/assert.ts";
import type { RandomAccess } from "../base/byte-source.ts";
import { SluiceError } from "../base/errors.ts";
import type { ByteRange } from "../base/range.ts";
import type { PictureState, SecondsRange } from "../media/picture-subtitles.ts";
import type { TextCue } from "../media/webvtt.ts";
import { transcodeFile } from "./audio/transcoded-reader.ts";
import { fitFmp4, fitTs, isTsCodec } from "./container-rules.ts";
import type {
  Media,
  MediaPart,
  MediaTrack,
  Remux,
  RemuxFormat,
  SeekableTs,
  SegmentTimes,
  SoundSlice,
} from "./contract.ts";
import { Fmp4Writer } from "./fmp4-writer.ts";
import type { OpenSettings, SourceTrack } from "./media-tracks.ts";
import type { PacketReader, PlannedFrames, SegmentBounds } from "./packet-reader.ts";
import { asMediaError, connect } from "./remuxer.ts";
import { segmentTimes, sliceBounds, soundSlices } from "./segment-plan.ts";
import { SUBTITLE_OFFSET_TICKS, type SubtitleSource } from "./subtitles.ts";
import { byteCutter, planTsLayout, segmentsOf, type TsLayout } from "./ts-layout.ts";
import type { TsMuxTrack } from "./ts-mux-input.ts";
import { canPlan, TsMuxer } from "./ts-muxer.ts";

/** How many times the size of the file its MPEG-TS may have: films with 10 frames of 100 bytes a second have 3 times. */
const LAYOUT_LIMIT = 32;

/** The parts of a {@link PacketMedia}. */
interface PacketMediaParts {
  readonly container: "mp4" | "matroska";
  readonly source: RandomAccess;
  readonly reader: PacketReader;
  /** In the order for players: video first, then audio, the preferred language before the others. */
  readonly tracks: readonly SourceTrack[];
  readonly subtitles: SubtitleSource;
  /** Start times of the segments, in seconds of the file's timeline; never empty. */
  readonly cuts: readonly number[];
  readonly endSeconds: number;
}

/** Creates the media of an MP4 or Matroska file; converts its audio if the settings request it. */
export async function createPacketMedia(
  parts: PacketMediaParts,
  { conversion, transcoder, signal }: OpenSettings,
): Promise<Media> {
  return new PacketMedia(
    conversion && transcoder ? await transcodeFile(parts, conversion, transcoder, signal) : parts,
  );
}

/** An MP4 or Matroska file, remuxed to MPEG-TS or fragmented MP4. */
class PacketMedia implements Media {
  readonly container: "mp4" | "matroska";
  readonly rawMime: string | undefined;
  readonly durationSeconds: number;
  readonly tracks: readonly MediaTrack[];
  readonly zeroTicks = SUBTITLE_OFFSET_TICKS;
  readonly segments: readonly SegmentTimes[];
  readonly soundSlices: readonly SoundSlice[];
  readonly tsProblem: SluiceError | undefined;
  readonly fmp4Problem: SluiceError | undefined;
  readonly silentIn: Media["silentIn"];
  readonly separateAudio: Media["separateAudio"];
  readonly #parts: PacketMediaParts;
  /** By the name of the part. */
  readonly #outputs = new Map<string, PartOutput>();
  #layout: TsLayout | undefined;
  readonly #closing = new AbortController();
  /** Limits memory: a job reads parts of the index. */
  readonly #slots = new Slots({
    limit: 4,
    // More means that a caller requests without waiting for results.
    queueLimit: 256,
    queueFull: () =>
      new SluiceError("too_many", "more than 256 requests are waiting for this file; close some players"),
  });

  constructor(parts: PacketMediaParts) {
    this.#parts = parts;
    this.container = parts.container;
    const hasVideo = parts.tracks.some(({ kind }) => kind === "video");
    this.rawMime = hasVideo ? undefined : parts.container === "mp4" ? "audio/mp4" : "audio/x-matroska";
    this.durationSeconds = Math.max(0, parts.endSeconds - parts.cuts[0]!);
    this.tracks = [...parts.tracks.map((track) => track.described), ...parts.subtitles.tracks];
    this.segments = segmentTimes(parts.cuts, parts.endSeconds);
    this.soundSlices = soundSlices(this.segments);
    const [ts, fmp4] = [fitTs(parts.tracks), fitFmp4(parts.tracks)];
    this.tsProblem = ts.problem;
    this.fmp4Problem = fmp4.problem;
    this.silentIn = [
      ...(ts.isSilent ? (["ts"] as const) : []),
      ...(fmp4.isSilent ? (["fmp4"] as const) : []),
    ];
    const separate = (fits: typeof fitTs) => (hasVideo ? audioThatFits(parts.tracks, fits) : []);
    this.separateAudio = { ts: separate(fitTs), fmp4: separate(fitFmp4) };
  }

  async remux(
    format: RemuxFormat,
    from: number,
    to = this.segments.length,
    signal?: AbortSignal,
    part: MediaPart = "all",
  ): Promise<Remux> {
    return this.#remux(format, from, to, part, signal);
  }

  async seekableTs(signal?: AbortSignal): Promise<SeekableTs | undefined> {
    const layout = await this.#tsLayout(signal);
    if (!layout) return undefined;
    const remux = async ({ start, end }: ByteRange, stop?: AbortSignal) => {
      const { from, to, skipBytes } = segmentsOf(layout, { start, end });
      const planned = await this.#remux("ts", from, to, "all", stop, skipBytes);
      if (skipBytes === 0 && end === layout.size) return planned;
      return { ...planned, remuxer: connect(planned.remuxer, byteCutter(skipBytes, end - start)) };
    };
    return { size: layout.size, remux };
  }

  async fmp4Init(signal?: AbortSignal, part: MediaPart = "all"): Promise<Uint8Array<ArrayBuffer>> {
    if (this.fmp4Problem) throw this.fmp4Problem;
    return this.#run((aborted) => this.#output(part).fmp4Writer.init(aborted), signal);
  }

  async cues(trackIndex: number, index: number, signal?: AbortSignal): Promise<readonly TextCue[]> {
    const { startSeconds, endSeconds } = this.#bounds(index);
    const subtitle = trackIndex - this.#parts.tracks.length;
    const track = this.tracks[trackIndex];
    if (track?.kind !== "subtitle" || track.isOpaque)
      throw new SluiceError("no_such_segment", `track ${trackIndex} is not a text subtitle track`);
    return this.#run(
      (aborted) => this.#parts.subtitles.cues(subtitle, { startSeconds, endSeconds }, aborted),
      signal,
    );
  }

  async pictures(
    trackIndex: number,
    seconds: SecondsRange,
    signal?: AbortSignal,
  ): Promise<readonly PictureState[]> {
    const { subtitles, tracks } = this.#parts;
    if (!this.tracks[trackIndex]?.isPicture)
      throw new SluiceError("no_such_segment", `track ${trackIndex} is not a subtitle track of pictures`);
    return this.#run(
      async (aborted) => (await subtitles.pictures?.(trackIndex - tracks.length, seconds, aborted)) ?? [],
      signal,
    );
  }

  close(): void {
    this.#closing.abort(new SluiceError("cancelled", "the media was closed"));
  }

  /** Runs `job` when a slot is free; aborts it when `signal` fires or the media is closed. */
  #run<T>(job: (aborted: AbortSignal) => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    return withLinkedAbort(signal, this.#closing.signal, async (aborted) => {
      try {
        return await this.#slots.run(() => asSluiceError(job(aborted)), aborted);
      } catch (error) {
        if (aborted.aborted)
          throw new SluiceError("cancelled", "the request was cancelled", { cause: error });
        throw error;
      }
    });
  }

  /** `skipBytes`: makes MPEG-TS of planned size, and skips frames before this position in the first segment. */
  #remux(
    format: RemuxFormat,
    from: number,
    to: number,
    part: MediaPart,
    signal: AbortSignal | undefined,
    skipBytes?: number,
  ): Promise<Remux> {
    const slice = typeof part === "object" ? part.slice : undefined;
    const segments = this.#segments(from, to).map((bounds) => this.#sliced(bounds, slice));
    const problem = format === "ts" ? this.tsProblem : this.fmp4Problem;
    if (problem) throw problem;
    const output = this.#output(part);
    return this.#run(async (aborted) => {
      const { reader, source } = this.#parts;
      const tracks = format === "ts" ? output.tsTracks : await output.fmp4Writer.tracks(aborted);
      const isPlanned = skipBytes !== undefined;
      const tsMuxer = format === "ts" ? await output.tsMuxer(isPlanned, aborted) : undefined;
      const mark = skipBytes && ((frames: readonly PlannedFrames[]) => tsMuxer?.skip(frames, skipBytes));
      const used = eitherSignal(signal, this.#closing.signal);
      const { ranges, demuxer, pool } = await reader.demux(tracks, segments, used, mark || undefined);
      const muxer =
        tsMuxer?.remuxer(pool) ?? (await output.fmp4Writer.remuxer(slice?.number ?? from, aborted));
      return { source, ranges, closed: this.#closing.signal, remuxer: connect(demuxer, muxer), pool };
    }, signal);
  }

  /** Returns undefined if the sizes of segments are not known, or if the file breaks off: what precedes the damage plays. */
  async #tsLayout(signal: AbortSignal | undefined): Promise<TsLayout | undefined> {
    if (this.#layout || this.tsProblem || !this.#parts.reader.plan) return this.#layout;
    try {
      this.#layout = await this.#run(async (aborted) => {
        const output = this.#output("all");
        if (!output.tsTracks.map(muxTrack).every(canPlan)) return undefined;
        const planned = this.#parts.reader.plan!(output.tsTracks, this.#segments(0, this.segments.length));
        const sizes = (await output.tsMuxer(true, aborted)).sizes(planned);
        return planTsLayout(sizes, LAYOUT_LIMIT * this.#parts.source.size, aborted);
      }, signal);
    } catch (error) {
      if (!(error instanceof SluiceError) || error.code !== "broken_media") throw error;
    }
    return this.#layout;
  }

  #segments(from: number, to: number): SegmentBounds[] {
    return Array.from({ length: Math.max(1, to - from) }, (_, i) => this.#bounds(from + i));
  }

  #bounds(index: number): SegmentBounds {
    const { cuts } = this.#parts;
    if (!Number.isInteger(index) || index < 0 || index >= cuts.length) {
      throw new SluiceError(
        "no_such_segment",
        `segment ${index} does not exist; the file has ${cuts.length} segments`,
      );
    }
    return {
      startSeconds: index === 0 ? Number.NEGATIVE_INFINITY : cuts[index]!,
      endSeconds: cuts[index + 1] ?? Number.POSITIVE_INFINITY,
    };
  }

  #sliced(bounds: SegmentBounds, slice: SoundSlice | undefined): SegmentBounds {
    if (!slice) return bounds;
    const { cuts, endSeconds } = this.#parts;
    const [start, end = endSeconds] = cuts.slice(slice.segment, slice.segment + 2);
    return { ...bounds, sliceSeconds: sliceBounds(start!, end, slice) };
  }

  #output(part: MediaPart): PartOutput {
    const name = typeof part === "object" ? `audio ${part.audio}` : part;
    const output = this.#outputs.get(name) ?? new PartOutput(this.#parts.reader, this.#tracksOf(part));
    this.#outputs.set(name, output);
    return output;
  }

  #tracksOf(part: MediaPart): readonly SourceTrack[] {
    const { tracks } = this.#parts;
    if (part === "all") return tracks;
    const wanted = part === "video" ? tracks.find(({ kind }) => kind === "video") : tracks[part.audio];
    if (wanted && wanted.kind === (part === "video" ? "video" : "audio")) return [wanted];
    throw new SluiceError("no_such_segment", "the file has no such track");
  }
}

/** Writes a part of the file in both containers. */
class PartOutput {
  readonly tsTracks: readonly SourceTrack[];
  readonly fmp4Writer: Fmp4Writer;
  readonly #reader: PacketReader;
  readonly #muxers = new Map<boolean, TsMuxer>();

  constructor(reader: PacketReader, tracks: readonly SourceTrack[]) {
    this.#reader = reader;
    this.tsTracks = fitTs(tracks).tracks;
    this.fmp4Writer = new Fmp4Writer(reader, fitFmp4(tracks).tracks);
  }

  /** `isPlanned`: see {@link TsMuxer}. */
  async tsMuxer(isPlanned: boolean, signal: AbortSignal): Promise<TsMuxer> {
    const known = this.#muxers.get(isPlanned);
    if (known) return known;
    const tracks: TsMuxTrack[] = [];
    for (const track of this.tsTracks) {
      const isVideo = track.kind === "video";
      const order = isVideo ? await this.#reader.reordering(track, signal) : undefined;
      const reorder = order && { reorderSeconds: order.seconds, reorderFrames: order.frames };
      tracks.push({ ...muxTrack(track), ...reorder });
    }
    const muxer = new TsMuxer(tracks, isPlanned);
    this.#muxers.set(isPlanned, muxer);
    return muxer;
  }
}

/** Returns the indexes of the audio tracks that a container can carry on their own. */
function audioThatFits(tracks: readonly SourceTrack[], fits: typeof fitTs): number[] {
  return [...tracks.entries()].flatMap(([index, track]) =>
    track.kind === "audio" && fits([track]).tracks.length > 0 ? [index] : [],
  );
}

function muxTrack({ described, config, sampleRate }: SourceTrack): TsMuxTrack {
  assert(isTsCodec(described.codec), "MPEG-TS cannot carry the codec");
  return {
    codec: described.codec,
    language: described.language,
    ...(config ? { config } : {}),
    ...(sampleRate === undefined ? {} : { sampleRate }),
  };
}

/** Maps errors of parsers and of mediabunny to `SluiceError("broken_media")`; other errors pass unchanged. */
export async function asSluiceError<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw asMediaError(error);
  }
}
