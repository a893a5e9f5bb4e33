import { assert } from "../base/assert.ts";
import { DecodeError, messageOf, SluiceError } from "../base/errors.ts";
import { fmp4ProblemOf, isFmp4Codec, isTsCodec, tsProblemOf } from "./container-rules.ts";
import type { Media, MediaTrack, SegmentTimes } from "./contract.ts";
import { underEither } from "./either-signal.ts";
import { Fmp4Writer } from "./fmp4-writer.ts";
import { Gate } from "./gate.ts";
import type { SourceTrack } from "./media-tracks.ts";
import { OwnedMemory } from "./owned-memory.ts";
import type { PacketReader, SegmentBounds } from "./packet-reader.ts";
import { segmentTimes } from "./segment-plan.ts";
import type { SubtitleSource } from "./subtitles.ts";
import type { TsMuxTrack } from "./ts-mux-input.ts";
import { TsMuxer, tsMuxProblem } from "./ts-muxer.ts";

/** What a {@link PacketMedia} is made of. */
export interface PacketMediaParts {
  readonly container: "mp4" | "matroska";
  readonly reader: PacketReader;
  /** In the order players shall see them: video first, then audio, the preferred language before the others. */
  readonly tracks: readonly SourceTrack[];
  readonly subtitles: SubtitleSource;
  /** Where segments begin, in the time of the file; never empty. */
  readonly cuts: readonly number[];
  readonly endSeconds: number;
}

/** A file whose packets mediabunny takes apart, put together again as MPEG-TS or fragmented MP4. */
export class PacketMedia implements Media {
  readonly container: "mp4" | "matroska";
  readonly durationSeconds: number;
  readonly tracks: readonly MediaTrack[];
  readonly segments: readonly SegmentTimes[];
  readonly tsProblem: SluiceError | undefined;
  readonly fmp4Problem: SluiceError | undefined;
  readonly #parts: PacketMediaParts;
  readonly #tsTracks: readonly SourceTrack[];
  readonly #fmp4Writer: Fmp4Writer;
  #muxer: TsMuxer | undefined;
  readonly #closing = new AbortController();
  /** A job holds a whole segment, twice. */
  readonly #gate = new Gate(4);

  constructor(parts: PacketMediaParts) {
    this.#parts = parts;
    this.container = parts.container;
    this.durationSeconds = Math.max(0, parts.endSeconds - parts.cuts[0]!);
    this.tracks = [...parts.tracks.map((track) => track.described), ...parts.subtitles.tracks];
    this.segments = segmentTimes(parts.cuts, parts.endSeconds);
    this.#tsTracks = parts.tracks.filter((track) => isTsCodec(track.described.codec));
    this.tsProblem = tsProblemOf(parts.tracks) ?? tsMuxProblem(this.#tsTracks.map(muxTrack));
    this.fmp4Problem = fmp4ProblemOf(parts.tracks);
    const fmp4Tracks = parts.tracks.filter((track) => isFmp4Codec(track.described.codec));
    this.#fmp4Writer = new Fmp4Writer(parts.reader, [
      ...fmp4Tracks.filter((track) => track.kind === "video"),
      ...fmp4Tracks.filter((track) => track.kind === "audio").slice(0, 1),
    ]);
  }

  async tsSegment(index: number, signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
    const bounds = this.#bounds(index);
    if (this.tsProblem) throw this.tsProblem;
    return this.#run(async (ending) => {
      this.#muxer ??= new TsMuxer(await this.#muxTracks(ending));
      const memory = new OwnedMemory();
      const packets = await this.#parts.reader.read(this.#tsTracks, bounds, memory, ending);
      const segment = this.#muxer.segment(packets);
      memory.free();
      return segment;
    }, signal);
  }

  async fmp4Init(signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
    if (this.fmp4Problem) throw this.fmp4Problem;
    return this.#run((ending) => this.#fmp4Writer.init(ending), signal);
  }

  async fmp4Segment(index: number, signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
    const bounds = this.#bounds(index);
    if (this.fmp4Problem) throw this.fmp4Problem;
    return this.#run((ending) => this.#fmp4Writer.segment(bounds, index, ending), signal);
  }

  async webvttSegment(trackIndex: number, index: number, signal?: AbortSignal): Promise<string> {
    const { startSeconds, endSeconds } = this.#bounds(index);
    const subtitle = trackIndex - this.#parts.tracks.length;
    if (this.tracks[trackIndex]?.kind !== "subtitle") {
      throw new SluiceError("no_such_segment", `track ${trackIndex} is no subtitle track`);
    }
    return this.#run(
      (ending) => this.#parts.subtitles.webvtt(subtitle, { startSeconds, endSeconds }, ending),
      signal,
    );
  }

  close(): void {
    this.#closing.abort();
    this.#parts.reader.close();
  }

  /** Does `job` when there is room for it; ends it when `signal` fires or the file is closed. */
  #run<T>(job: (ending: AbortSignal) => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    return underEither(signal, this.#closing.signal, (ending) =>
      this.#gate.run(() => asSluiceError(job(ending)), ending),
    );
  }

  #bounds(index: number): SegmentBounds {
    const { cuts } = this.#parts;
    if (!Number.isInteger(index) || index < 0 || index >= cuts.length) {
      throw new SluiceError("no_such_segment", `there is no segment ${index}: there are ${cuts.length}`);
    }
    return {
      startSeconds: index === 0 ? Number.NEGATIVE_INFINITY : cuts[index]!,
      endSeconds: cuts[index + 1] ?? Number.POSITIVE_INFINITY,
    };
  }

  async #muxTracks(signal: AbortSignal): Promise<TsMuxTrack[]> {
    const tracks: TsMuxTrack[] = [];
    for (const track of this.#tsTracks) {
      const isVideo = track.kind === "video";
      const reorder = isVideo
        ? { reorderSeconds: await this.#parts.reader.reorderSeconds(track, signal) }
        : {};
      tracks.push({ ...muxTrack(track), ...reorder });
    }
    return tracks;
  }
}

function muxTrack({ described, config, sampleRate }: SourceTrack): TsMuxTrack {
  assert(isTsCodec(described.codec), "only tracks that MPEG-TS can carry");
  return {
    codec: described.codec,
    language: described.language,
    ...(config ? { config } : {}),
    ...(sampleRate === undefined ? {} : { sampleRate }),
  };
}

/** Whatever goes wrong while reading media is the media's fault, unless it says otherwise itself. */
export async function asSluiceError<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof SluiceError || (error instanceof Error && error.name === "BugError")) throw error;
    if (error instanceof DecodeError || isLibraryError(error)) {
      throw new SluiceError("broken_media", `the media file is broken: ${messageOf(error)}`, {
        cause: error,
      });
    }
    throw error;
  }
}

const NOT_THE_MEDIA = new Set(["AbortError", "ReferenceError"]);

/** Errors of the media library have no class of their own. */
function isLibraryError(error: unknown): boolean {
  return error instanceof Error && !("code" in error) && !NOT_THE_MEDIA.has(error.name);
}
