import { withLinkedAbort } from "../async/abort.ts";
import { BufferPool } from "../base/buffer-pool.ts";
import type { RandomAccess } from "../base/byte-source.ts";
import { SluiceError } from "../base/errors.ts";
import { languageCode } from "../media/language.ts";
import type { PictureState, SecondsRange } from "../media/picture-subtitles.ts";
import { reorderPmt } from "../media/psi.ts";
import { TICKS_PER_SECOND } from "../media/timestamps.ts";
import { TS_PACKET_BYTES } from "../media/ts-packet.ts";
import type { TsStream } from "../media/ts-programme.ts";
import type { TextCue } from "../media/webvtt.ts";
import type { AudioTranscoder } from "./audio/transcoder.ts";
import { withoutAudio } from "./audio/ts-converter.ts";
import { convertedTracks, TsFileAudio, type TsFileTrack } from "./audio/ts-file-audio.ts";
import { isTsCodec } from "./container-rules.ts";
import type {
  Media,
  MediaPart,
  MediaTrack,
  OpenMediaOptions,
  Remux,
  RemuxFormat,
  SegmentTimes,
  SoundSlice,
} from "./contract.ts";
import { pieceStream, streamBytes } from "./piece-stream.ts";
import { connect } from "./remuxer.ts";
import { soundSlices } from "./segment-plan.ts";
import { TsBoundaries } from "./ts-boundaries.ts";
import { AFTER_STEP_BYTES, STRADDLE_BYTES, tsCutter } from "./ts-cut.ts";
import { readTsHead, readTsTimes, type TsHead } from "./ts-head.ts";
import { FULL_INDEX_BYTES, planByScan, planByTimes, type TsPlan, targetTicksOf } from "./ts-plan.ts";
import { TsReader } from "./ts-reader.ts";
import { TsSubtitles } from "./ts-subtitles.ts";
import { hasAac, tsToFmp4, tsToFmp4Problem } from "./ts-to-fmp4.ts";
import { describeTracks } from "./ts-tracks.ts";

const TARGET_SECONDS = 6;

/**
 * Opens a transport stream file. Reads the head and the tail, and all of a file up to `fullIndexBytes`, for exact durations.
 * Rejects with `SluiceError`: `unsupported_container`, `broken_media`, `cancelled`.
 */
export async function openTsFile(
  source: RandomAccess,
  options: OpenMediaOptions = {},
  fullIndexBytes = FULL_INDEX_BYTES,
  transcoder?: AudioTranscoder,
): Promise<Media> {
  try {
    return await open(source, options, fullIndexBytes, transcoder);
  } catch (error) {
    if (!options.signal?.aborted) throw error;
    throw new SluiceError("cancelled", "opening the file was cancelled", { cause: error });
  }
}

async function open(
  source: RandomAccess,
  options: OpenMediaOptions,
  fullIndexBytes: number,
  transcoder: AudioTranscoder | undefined,
): Promise<Media> {
  const { signal } = options;
  const head = await readTsHead(source, signal);
  const reader = new TsReader(source, head.layout);
  const targetTicks = Math.max(1, options.targetSeconds ?? TARGET_SECONDS) * TICKS_PER_SECOND;
  const times = await readTsTimes(reader, head.leading, targetTicksOf(0, targetTicks), signal);
  const plan =
    source.size <= fullIndexBytes
      ? await planByScan(reader, head.leading, times, targetTicks, signal)
      : planByTimes(times, head.leading, targetTicks);
  const tracks = describeTracks(head.streams, head.packets, languageCode(options.audio?.language));
  const boundaries = new TsBoundaries(reader, head.leading, times, plan);
  return new TsFile(
    reader,
    head,
    plan,
    boundaries,
    convertedTracks(tracks, head.packets, options.audio?.conversion, transcoder),
  );
}

/** Returns true if the file lists its audio streams in this order. */
function isAudioOrder(streams: readonly TsStream[], order: readonly number[]): boolean {
  const audio = streams.filter(({ kind }) => kind === "audio").map(({ pid }) => pid);
  const wanted = order.filter((pid) => audio.includes(pid));
  return audio.every((pid, i) => pid === wanted[i]);
}

/** A transport stream file, whose packets pass through unchanged. */
class TsFile implements Media {
  readonly container = "mpegts";
  /** A file that needs no changes is its own MPEG-TS, in which players seek. */
  readonly rawMime: string | undefined;
  readonly durationSeconds: number;
  readonly tracks: readonly MediaTrack[];
  readonly soundSlices: readonly SoundSlice[];
  readonly tsProblem = undefined;
  readonly fmp4Problem: SluiceError | undefined;
  readonly silentIn: Media["silentIn"];
  readonly separateAudio: Media["separateAudio"];
  readonly #reader: TsReader;
  readonly #head: TsHead;
  readonly #plan: TsPlan;
  readonly #boundaries: TsBoundaries;
  readonly #audio: TsFileAudio;
  readonly #tracks: readonly TsFileTrack[];
  readonly #subtitles: TsSubtitles;
  readonly #pool = new BufferPool();
  readonly #closing = new AbortController();
  #init: Uint8Array<ArrayBuffer> | undefined;

  constructor(
    reader: TsReader,
    head: TsHead,
    plan: TsPlan,
    boundaries: TsBoundaries,
    tracks: readonly TsFileTrack[],
  ) {
    this.#reader = reader;
    const order = tracks.map(({ pid }) => pid);
    // Players choose the first audio stream of the PMT, so the preferred language comes first.
    const pmtSection = reorderPmt(head.tables.pmtSection, order);
    this.#head = { ...head, tables: { ...head.tables, pmtSection } };
    const { stride, at } = head.layout;
    const isConverted = tracks.some(({ converter }) => converter);
    const isPlain = stride === TS_PACKET_BYTES && at === 0 && head.isOnlyProgramme && !isConverted;
    this.rawMime = isPlain && isAudioOrder(head.streams, order) ? "video/mp2t" : undefined;
    this.#plan = plan;
    this.#boundaries = boundaries;
    // From the planned times: the names of segments must not change when a boundary is found.
    this.soundSlices = soundSlices(this.segments);
    this.durationSeconds = plan.endTicks / TICKS_PER_SECOND;
    this.#tracks = tracks;
    this.tracks = tracks.map(({ described }) => described);
    this.#subtitles = new TsSubtitles(reader, boundaries, plan);
    this.fmp4Problem = tsToFmp4Problem(this.tracks);
    const hasAudio = this.tracks.some(({ kind }) => kind === "audio");
    this.silentIn = hasAudio && !hasAac(this.tracks) ? ["fmp4"] : [];
    this.separateAudio = { ts: separateTracks(this.tracks), fmp4: [] };
    const closed = this.#closing.signal;
    const segments = plan.starts.length;
    this.#audio = new TsFileAudio({
      reader,
      head: this.#head,
      boundaries,
      tracks,
      segments,
      durationSeconds: this.durationSeconds,
      closed,
    });
  }

  get zeroTicks(): number {
    return this.#boundaries.firstDts;
  }

  /** Planned times; exact for boundaries that have been found. */
  get segments(): readonly SegmentTimes[] {
    const count = this.#plan.starts.length;
    return this.#plan.starts.map((_, index) => {
      const start = this.#boundaries.startTicks(index);
      const end = index + 1 < count ? this.#boundaries.startTicks(index + 1) : this.#plan.endTicks;
      return {
        startSeconds: start / TICKS_PER_SECOND,
        durationSeconds: Math.max(0, end - start) / TICKS_PER_SECOND,
      };
    });
  }

  async remux(
    format: RemuxFormat,
    from: number,
    to = this.#plan.starts.length,
    signal?: AbortSignal,
    part: MediaPart = "all",
  ): Promise<Remux> {
    this.#checkIndex(from);
    if (format === "fmp4" && this.fmp4Problem) throw this.fmp4Problem;
    return withLinkedAbort(signal, this.#closing.signal, async (either) => {
      try {
        const cut = this.#audio.isMadeFor(part)
          ? this.#audio.remux(from, to, part, signal)
          : await this.#cut(from, to, part === "video" ? withoutAudio(this.#head) : this.#head, either);
        return format === "ts" ? cut : { ...cut, remuxer: connect(cut.remuxer, tsToFmp4("data")) };
      } catch (error) {
        if (either.aborted)
          throw new SluiceError("cancelled", "reading the segment was cancelled", { cause: error });
        throw error;
      }
    });
  }

  async fmp4Init(signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
    if (this.fmp4Problem) throw this.fmp4Problem;
    const first = await this.remux("ts", 0, 1, signal);
    const pieces = pieceStream(first, { signal });
    this.#init ??= await streamBytes(pieces.pipeThrough(first.remuxer).pipeThrough(tsToFmp4("init")));
    return this.#init;
  }

  async cues(trackIndex: number, index: number, signal?: AbortSignal): Promise<readonly TextCue[]> {
    const { pid, page, captions } = this.#tracks[trackIndex] ?? {};
    if (pid === undefined || !(page || captions))
      throw new SluiceError("no_such_segment", `track ${trackIndex} is not a text subtitle track`);
    this.#checkIndex(index);
    return this.#readSubtitles(
      (either) =>
        page
          ? this.#subtitles.cues(pid, page, index, either)
          : this.#subtitles.captions(captions!, index, either),
      signal,
    );
  }

  async pictures(
    trackIndex: number,
    seconds: SecondsRange,
    signal?: AbortSignal,
  ): Promise<readonly PictureState[]> {
    const { pid, pictures, described } = this.#tracks[trackIndex] ?? {};
    if (pid === undefined || !described?.isPicture)
      throw new SluiceError("no_such_segment", `track ${trackIndex} is not a subtitle track of pictures`);
    return this.#readSubtitles((either) => this.#subtitles.pictures(pid, pictures, seconds, either), signal);
  }

  #readSubtitles<T>(read: (signal: AbortSignal) => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    return withLinkedAbort(signal, this.#closing.signal, async (either) => {
      try {
        return await read(either);
      } catch (error) {
        if (either.aborted)
          throw new SluiceError("cancelled", "reading subtitles was cancelled", { cause: error });
        throw error;
      }
    });
  }

  close(): void {
    this.#closing.abort(new SluiceError("cancelled", "the media was closed"));
  }

  #checkIndex(index: number): void {
    const count = this.#plan.starts.length;
    if (Number.isInteger(index) && index >= 0 && index < count) return;
    throw new SluiceError(
      "no_such_segment",
      `segment ${index} does not exist; the file has ${count} segments`,
    );
  }

  /** Cuts the segments `[from, to)` as one: the packets between two boundaries, and the rest of audio units after them. */
  async #cut(from: number, to: number, head: TsHead, signal: AbortSignal): Promise<Remux> {
    signal.throwIfAborted();
    const { source } = this.#reader;
    const start = await this.#boundaries.find(from, signal);
    const end = Math.max(start, await this.#boundaries.find(to, signal));
    const { tables, streams, leading, layout } = head;
    const ticks = this.#boundaries.startTicks(to) - this.#boundaries.startTicks(from);
    const cut = { tables, streams, leading, stride: layout.stride, bodyBytes: end - start };
    const seconds = Math.max(0, ticks) / TICKS_PER_SECOND;
    return {
      source,
      closed: this.#closing.signal,
      ranges: function* () {
        if (end > start) yield { start, end, until: end, unitBytes: layout.stride };
        const last = Math.min(source.size, end + STRADDLE_BYTES);
        for (let at = end; at < last; at += AFTER_STEP_BYTES)
          yield { start: at, end: Math.min(at + AFTER_STEP_BYTES, last), until: at };
      },
      remuxer: tsCutter({ ...cut, isFirst: from === 0, seconds }, this.#pool),
      pool: this.#pool,
    };
  }
}

/** Returns the tracks that players can get apart from the picture, as indexes; none if the first one cannot be separated. */
function separateTracks(tracks: readonly MediaTrack[]): number[] {
  const audio = [...tracks.keys()].filter((index) => tracks[index]!.kind === "audio");
  const separable = audio.filter((index) => isTsCodec(tracks[index]!.codec));
  return tracks[0]?.kind === "video" && separable[0] === audio[0] ? separable : [];
}
