import { withLinkedAbort } from "../async/abort.ts";
import type { RandomAccess } from "../base/byte-source.ts";
import { concatBytes } from "../base/bytes.ts";
import { SluiceError } from "../base/errors.ts";
import { languageCode } from "../media/language.ts";
import { reorderPmt } from "../media/psi.ts";
import { TICKS_PER_SECOND } from "../media/timestamps.ts";
import { TS_PACKET_BYTES } from "../media/ts-packet.ts";
import type { TsStream } from "../media/ts-programme.ts";
import { alignPackets } from "../media/ts-sync.ts";
import type { AudioTranscoder } from "./audio/transcoder.ts";
import { audioUnits } from "./audio/ts-audio.ts";
import { TsConverter } from "./audio/ts-converter.ts";
import { BufferPool } from "./buffer-pool.ts";
import type { Media, MediaTrack, OpenMediaOptions, Remux, RemuxFormat, SegmentTimes } from "./contract.ts";
import { pieceStream, streamBytes } from "./piece-stream.ts";
import { connect, Remuxer } from "./remuxer.ts";
import { TsBoundaries } from "./ts-boundaries.ts";
import { cutSegment, hasAllStarts, STRADDLE_BYTES, tsCutter } from "./ts-cut.ts";
import { readTsHead, readTsTimes, type TsHead } from "./ts-head.ts";
import { FULL_INDEX_BYTES, planByScan, planByTimes, type TsPlan, targetTicksOf } from "./ts-plan.ts";
import { TsReader } from "./ts-reader.ts";
import { hasAac, tsToFmp4, tsToFmp4Problem } from "./ts-to-fmp4.ts";
import { describeTracks, type TsTrack } from "./ts-tracks.ts";

const TARGET_SECONDS = 6;
/** Limits of the bytes that are read before a segment to convert its audio. */
const MIN_PREROLL_BYTES = 256 * 1024;
const MAX_PREROLL_BYTES = 8 * 1024 * 1024;
/** Step size for reading the rest of straddling audio units; most end in the first step. */
const AFTER_STEP_BYTES = 64 * 1024;

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
  const conversion = options.audio?.conversion;
  const converter = conversion && transcoder && new TsConverter(transcoder, conversion);
  const audio = tracks.find(({ described }) => described.kind === "audio");
  if (!converter || !audio || !converter.needs(audio.described.codec))
    return new TsFile(reader, head, plan, boundaries, tracks, undefined);
  // The converted track replaces all audio.
  const others = tracks.filter(({ described }) => described.kind !== "audio");
  const convertedFrom = audio.described.codec;
  const described = { ...audio.described, codec: "aac", codecString: "mp4a.40.2", convertedFrom };
  return new TsFile(reader, head, plan, boundaries, [...others, { ...audio, described }], converter);
}

/** Returns true if the file lists its audio streams in this order. */
function isAudioOrder(streams: readonly TsStream[], order: readonly number[]): boolean {
  const audio = streams.filter(({ kind }) => kind === "audio").map(({ pid }) => pid);
  const wanted = order.filter((pid) => audio.includes(pid));
  return audio.every((pid, i) => pid === wanted[i]);
}

/** A segment between two byte positions. */
interface CutSegment {
  readonly index: number;
  readonly start: number;
  readonly end: number;
}

/** A transport stream file, whose packets pass through unchanged. */
class TsFile implements Media {
  readonly container = "mpegts";
  /** A file that needs no changes is its own MPEG-TS, in which players seek. */
  readonly rawMime: string | undefined;
  readonly durationSeconds: number;
  readonly tracks: readonly MediaTrack[];
  readonly tsProblem = undefined;
  readonly fmp4Problem: SluiceError | undefined;
  readonly silentIn: Media["silentIn"];
  readonly separateAudio = { ts: [], fmp4: [] };
  readonly #reader: TsReader;
  readonly #head: TsHead;
  readonly #plan: TsPlan;
  readonly #boundaries: TsBoundaries;
  /** Converts the first audio track; undefined if none is converted. */
  readonly #converter: TsConverter | undefined;
  readonly #audioTrack: TsTrack | undefined;
  readonly #pool = new BufferPool();
  readonly #closing = new AbortController();
  #init: Uint8Array<ArrayBuffer> | undefined;

  constructor(
    reader: TsReader,
    head: TsHead,
    plan: TsPlan,
    boundaries: TsBoundaries,
    tracks: readonly TsTrack[],
    converter: TsConverter | undefined,
  ) {
    this.#reader = reader;
    this.#converter = converter;
    this.#audioTrack = tracks.find(({ described }) => described.kind === "audio");
    const order = tracks.map(({ pid }) => pid);
    // Players choose the first audio stream of the PMT, so the preferred language comes first.
    const pmtSection = reorderPmt(head.tables.pmtSection, order);
    this.#head = { ...head, tables: { ...head.tables, pmtSection } };
    const { stride, at } = head.layout;
    const isPlain = stride === TS_PACKET_BYTES && at === 0 && head.isOnlyProgramme && !converter;
    this.rawMime = isPlain && isAudioOrder(head.streams, order) ? "video/mp2t" : undefined;
    this.#plan = plan;
    this.#boundaries = boundaries;
    this.durationSeconds = plan.endTicks / TICKS_PER_SECOND;
    this.tracks = tracks.map(({ described }) => described);
    this.fmp4Problem = tsToFmp4Problem(this.tracks);
    const hasAudio = this.tracks.some(({ kind }) => kind === "audio");
    this.silentIn = hasAudio && !hasAac(this.tracks) ? ["fmp4"] : [];
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
  ): Promise<Remux> {
    if (!Number.isInteger(from) || from < 0 || from >= this.#plan.starts.length) {
      throw new SluiceError(
        "no_such_segment",
        `segment ${from} does not exist; the file has ${this.#plan.starts.length} segments`,
      );
    }
    if (format === "fmp4" && this.fmp4Problem) throw this.fmp4Problem;
    return withLinkedAbort(signal, this.#closing.signal, async (either) => {
      try {
        const cut = this.#converter ? this.#cutAndConvert(from, to) : await this.#cut(from, to, either);
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

  cues(trackIndex: number): Promise<never> {
    const track = this.tracks[trackIndex];
    const problem =
      track?.kind === "subtitle"
        ? `${track.codec} subtitles are pictures and cannot be converted to text`
        : `track ${trackIndex} is not a subtitle track`;
    return Promise.reject(new SluiceError("unsupported_codec", problem));
  }

  close(): void {
    this.#closing.abort(new SluiceError("cancelled", "the media was closed"));
  }

  /** Cuts the segments `[from, to)` as one: the packets between two boundaries, and the rest of audio units after them. */
  async #cut(from: number, to: number, signal: AbortSignal): Promise<Remux> {
    signal.throwIfAborted();
    const { source } = this.#reader;
    const start = await this.#boundaries.find(from, signal);
    const end = Math.max(start, await this.#boundaries.find(to, signal));
    const { tables, streams, leading, layout } = this.#head;
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

  /** Cuts segment by segment and converts the audio of each. The stage holds one segment, because that is converted as a whole. */
  #cutAndConvert(from: number, to: number): Remux {
    const boundaries = this.#boundaries;
    const planned: CutSegment[] = [];
    let chunks: Uint8Array[] = [];
    let bytes = 0;
    return {
      source: this.#reader.source,
      closed: this.#closing.signal,
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
          const body = alignPackets(concatBytes(chunks), this.#head.layout.stride, false, true).packets;
          planned.shift();
          chunks = [];
          bytes = 0;
          return [await this.#convert(segment, body, this.#closing.signal)];
        },
      }),
    };
  }

  async #convert(
    { index, start, end }: CutSegment,
    body: Uint8Array,
    signal: AbortSignal,
  ): Promise<Uint8Array<ArrayBuffer>> {
    const after = await this.#after(end, signal);
    const { tables, streams, leading } = this.#head;
    const ticks = this.#boundaries.startTicks(index + 1) - this.#boundaries.startTicks(index);
    const seconds = Math.max(0, ticks) / TICKS_PER_SECOND;
    const cut = { tables, streams, leading, bodyBytes: body.length, isFirst: index === 0, seconds };
    const segment = cutSegment(cut, concatBytes([body, after]));
    return this.#withConvertedAudio(index, segment, { start, body, after }, signal);
  }

  async #withConvertedAudio(
    index: number,
    segment: Uint8Array<ArrayBuffer>,
    { start, body, after }: { start: number; body: Uint8Array; after: Uint8Array },
    signal: AbortSignal,
  ): Promise<Uint8Array<ArrayBuffer>> {
    const track = this.#audioTrack;
    if (!this.#converter || !track) return segment;
    const from = Math.max(0, start - this.#prerollBytes());
    const preroll = start > from ? await this.#reader.packets(from, start, signal) : new Uint8Array(0);
    const units = audioUnits(concatBytes([preroll, body, after]), track.pid);
    const ownEnd = preroll.length + body.length;
    const job = {
      segment,
      before: units.filter(({ at }) => at < preroll.length),
      own: units.filter(({ at }) => at >= preroll.length && at < ownEnd),
      language: track.described.language,
      hasVideo: this.tracks.some(({ kind }) => kind === "video"),
      isLast: index + 1 === this.#plan.starts.length,
    };
    return this.#converter.convert(job, signal);
  }

  /** The bytes of about two seconds: audio is up to a second behind the picture that is next to it in the file. */
  #prerollBytes(): number {
    const bytes = (2 * this.#reader.source.size) / Math.max(1, this.durationSeconds);
    return Math.ceil(Math.min(MAX_PREROLL_BYTES, Math.max(MIN_PREROLL_BYTES, bytes)));
  }

  async #after(end: number, signal: AbortSignal): Promise<Uint8Array> {
    const { size } = this.#reader.source;
    for (let length = AFTER_STEP_BYTES; ; length *= 2) {
      const to = Math.min(size, end + Math.min(length, STRADDLE_BYTES));
      const after = to > end ? await this.#reader.packets(end, to, signal) : new Uint8Array(0);
      if (to === size || length >= STRADDLE_BYTES || hasAllStarts(this.#head, after)) return after;
    }
  }
}
