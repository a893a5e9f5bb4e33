import type { RandomAccess } from "../base/byte-source.ts";
import { SluiceError } from "../base/errors.ts";
import { languageCode } from "../media/language.ts";
import { reorderPmt } from "../media/psi.ts";
import { TICKS_PER_SECOND } from "../media/timestamps.ts";
import type { Media, MediaTrack, OpenMediaOptions, SegmentTimes } from "./contract.ts";
import { underEither } from "./either-signal.ts";
import { OwnedMemory } from "./owned-memory.ts";
import { TsBorders } from "./ts-borders.ts";
import { cutSegment, hasAllStarts, STRADDLE_BYTES } from "./ts-cut.ts";
import { readTsHead, readTsTimes, type TsHead } from "./ts-head.ts";
import { FULL_INDEX_BYTES, planByScan, planByTimes, type TsPlan, wishedTicks } from "./ts-plan.ts";
import { TsReader } from "./ts-reader.ts";
import { type Fmp4Segment, TsToFmp4, tsToFmp4Problem } from "./ts-to-fmp4.ts";
import { describeTracks, type TsTrack } from "./ts-tracks.ts";

const TARGET_SECONDS = 6;
/** The rest of a straddling audio unit is read in steps of this size; most end in the first. */
const AFTER_STEP_BYTES = 64 * 1024;

/**
 * Opens a transport stream file. Reads the head and the tail; files up to `fullIndexBytes` whole, for exact durations. Rejects with
 * `SluiceError`: `unsupported_container`, `broken_media`, `cancelled`.
 */
export async function openTsFile(
  source: RandomAccess,
  options: OpenMediaOptions = {},
  fullIndexBytes = FULL_INDEX_BYTES,
): Promise<Media> {
  try {
    return await open(source, options, fullIndexBytes);
  } catch (error) {
    if (!options.signal?.aborted) throw error;
    throw new SluiceError("cancelled", "the opening of a file was cancelled", { cause: error });
  }
}

async function open(source: RandomAccess, options: OpenMediaOptions, fullIndexBytes: number): Promise<Media> {
  const { signal } = options;
  const head = await readTsHead(source, signal);
  const reader = new TsReader(source, head.layout);
  const targetTicks = Math.max(1, options.targetSeconds ?? TARGET_SECONDS) * TICKS_PER_SECOND;
  const times = await readTsTimes(reader, head.leading, wishedTicks(0, targetTicks), signal);
  const plan =
    source.size <= fullIndexBytes
      ? await planByScan(reader, head.leading, times, targetTicks, signal)
      : planByTimes(times, head.leading, targetTicks);
  const tracks = describeTracks(head.streams, head.packets, languageCode(options.preferredAudioLanguage));
  const borders = new TsBorders(reader, head.leading, times, plan);
  return new TsFile(reader, head, plan, borders, tracks);
}

/** A transport stream file as players see it: its packets pass through. */
class TsFile implements Media {
  readonly container = "mpegts";
  readonly durationSeconds: number;
  readonly tracks: readonly MediaTrack[];
  readonly tsProblem = undefined;
  readonly fmp4Problem: SluiceError | undefined;
  readonly #reader: TsReader;
  readonly #head: TsHead;
  readonly #plan: TsPlan;
  readonly #borders: TsBorders;
  readonly #closing = new AbortController();
  #init: Uint8Array<ArrayBuffer> | undefined;

  constructor(reader: TsReader, head: TsHead, plan: TsPlan, borders: TsBorders, tracks: readonly TsTrack[]) {
    this.#reader = reader;
    const order = tracks.map(({ pid }) => pid);
    // Players take the first audio stream of the PMT: the wished language goes there.
    this.#head = {
      ...head,
      tables: { ...head.tables, pmtSection: reorderPmt(head.tables.pmtSection, order) },
    };
    this.#plan = plan;
    this.#borders = borders;
    this.durationSeconds = plan.endTicks / TICKS_PER_SECOND;
    this.tracks = tracks.map(({ described }) => described);
    this.fmp4Problem = tsToFmp4Problem(this.tracks.filter(({ kind }) => kind !== "subtitle") as never);
  }

  /** Where borders have been found since, their times are exact. */
  get segments(): readonly SegmentTimes[] {
    const count = this.#plan.starts.length;
    return this.#plan.starts.map((_, index) => {
      const start = this.#borders.startTicks(index);
      const end = index + 1 < count ? this.#borders.startTicks(index + 1) : this.#plan.endTicks;
      return {
        startSeconds: start / TICKS_PER_SECOND,
        durationSeconds: Math.max(0, end - start) / TICKS_PER_SECOND,
      };
    });
  }

  async tsSegment(index: number, signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
    if (!Number.isInteger(index) || index < 0 || index >= this.#plan.starts.length) {
      throw new SluiceError("no_such_segment", `segment ${index} of ${this.#plan.starts.length}`);
    }
    return underEither(signal, this.#closing.signal, async (either) => {
      try {
        return await this.#cut(index, either);
      } catch (error) {
        if (either.aborted)
          throw new SluiceError("cancelled", "the reading of a segment was cancelled", { cause: error });
        throw error;
      }
    });
  }

  async fmp4Init(signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
    this.#init ??= (await this.#convert(0, signal)).init;
    return this.#init;
  }

  async fmp4Segment(index: number, signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
    return (await this.#convert(index, signal)).data;
  }

  webvttSegment(trackIndex: number): Promise<string> {
    const track = this.tracks[trackIndex];
    const what =
      track?.kind === "subtitle"
        ? `${track.codec} subtitles are pictures, not text`
        : "no such subtitle track";
    return Promise.reject(new SluiceError("unsupported_codec", what));
  }

  close(): void {
    this.#closing.abort(new SluiceError("cancelled", "the media was closed"));
  }

  async #convert(index: number, signal?: AbortSignal): Promise<Fmp4Segment> {
    if (this.fmp4Problem) throw this.fmp4Problem;
    const segment = new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          controller.enqueue(await this.tsSegment(index, signal));
          controller.close();
        },
      },
      { highWaterMark: 0 },
    );
    const { value } = await segment.pipeThrough(new TsToFmp4()).getReader().read();
    return value!;
  }

  async #cut(index: number, signal: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
    signal.throwIfAborted();
    const start = await this.#borders.find(index, signal);
    const end = await this.#borders.find(index + 1, signal);
    const { tables, streams, leading } = this.#head;
    const memory = new OwnedMemory();
    const body = await this.#reader.packets(start, Math.max(start, end), signal, memory);
    const after = await this.#after(end, signal);
    const ticks = this.#borders.startTicks(index + 1) - this.#borders.startTicks(index);
    const seconds = Math.max(0, ticks) / TICKS_PER_SECOND;
    const segment = cutSegment({ tables, streams, leading, body, after, isFirst: index === 0, seconds });
    memory.free();
    return segment;
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
