import type { AbortSignalLike } from "../base/byte-source.ts";
import { latin1Bytes, readU32 } from "../base/bytes.ts";
import { SluiceError } from "../base/errors.ts";
import type { Mp4Box } from "../media/mp4-boxes.ts";
import { parseMovieFragment, type SampleDefaults, type TrackFragment } from "../media/mp4-moof.ts";
import type { Mp4Samples } from "../media/mp4-samples.ts";
import type { BlockCache } from "./block-cache.ts";
import { boxAt } from "./mp4-layout.ts";

/** One parsed fragment of a file. */
export interface Fragment {
  /** Byte position of its `moof` box. */
  readonly at: number;
  /** Byte position where that box ends. */
  readonly end: number;
  readonly tracks: readonly TrackFragment[];
}

/** The position and time of a fragment, from the samples of its leading track. */
export interface FragmentPlace {
  readonly at: number;
  /** Byte position from which to search for the next fragment. */
  readonly next: number;
  /** Index of the first key frame of the leading track; 0 if the fragment has none. */
  readonly sample: number;
  /** Presentation time of that sample, in seconds of the file's timeline. */
  readonly seconds: number;
  readonly isKey: boolean;
}

/** Limit of a `moof` box: a sample takes about 16 bytes. */
const MOOF_LIMIT_BYTES = 16 * 1024 * 1024;
/** Limit of boxes between two fragments of the leading track: other tracks' fragments, `styp`, `emsg`, `prft`, … */
const BOXES_LIMIT = 4096;
/** Limit of fragments in a file without decode times, whose fragments are all parsed: a day of half-second fragments. */
const SUMMED_FRAGMENTS_LIMIT = 200_000;
const STEP_BYTES = 256 * 1024;
const MOOF = latin1Bytes("moof");
const MFHD = latin1Bytes("mfhd");

/** Finds and parses the fragments of a fragmented MP4 file. */
export class Fragments {
  readonly cache: BlockCache;
  readonly tables: ReadonlyMap<number, Mp4Samples>;
  /** Id of the track whose key frames decide the segment boundaries. */
  readonly leading: number;
  /** The samples in the sample tables of `moov`, which precede the first fragment; undefined if there are none. */
  readonly head: Fragment | undefined;
  readonly #defaults: ReadonlyMap<number, SampleDefaults>;
  /** Decode times by track at the start of each fragment, by the position of its `moof`; only for files without `tfdt`. */
  #decodeTimes: ReadonlyMap<number, ReadonlyMap<number, number>> = new Map();

  /**
   * @param tables the tables of `moov`: timescales, edit lists, and samples before the first fragment.
   * @param firstBoxEnd the byte position where the first box of the file ends.
   */
  constructor(
    cache: BlockCache,
    tables: readonly Mp4Samples[],
    defaults: ReadonlyMap<number, SampleDefaults>,
    leading: number,
    firstBoxEnd: number,
  ) {
    this.cache = cache;
    this.tables = new Map(tables.map((table) => [table.trackId, table]));
    this.#defaults = defaults;
    this.leading = leading;
    if (tables.some(({ count }) => count > 0)) {
      this.head = { at: 0, end: firstBoxEnd, tracks: tables.map(samplesOf) };
    }
  }

  /** Parses a `moof` box whose content is in `bytes`; byte 0 of `bytes` is byte `base` of the file. Throws `DecodeError`. */
  parse(bytes: Uint8Array, box: Mp4Box, base: number): Fragment {
    return this.#parse(bytes, box, base, new Map(this.#decodeTimes.get(box.at)));
  }

  /** Finds the first fragment in `[at, limit)`; a box must begin at `at`. Returns undefined if there is none. */
  async next(at: number, limit: number, signal?: AbortSignalLike): Promise<Fragment | undefined> {
    if (at === 0 && this.head) return this.head;
    const found = await this.#readMoof(at, limit, signal);
    return found && this.parse(found.bytes, found.box, found.box.start);
  }

  /** Finds the first fragment in `[at, limit)` that has samples of the leading track; a box must begin at `at`. */
  async nextPlace(at: number, limit: number, signal?: AbortSignalLike): Promise<FragmentPlace | undefined> {
    for (let i = 0; i < BOXES_LIMIT; i++) {
      const fragment = await this.next(at, limit, signal);
      if (!fragment) return undefined;
      const place = this.#placeOf(fragment);
      if (place) return place;
      at = fragment.end;
    }
    return undefined;
  }

  /**
   * Computes the decode times of all fragments as the sum of the durations before them (ISO 14496-12 8.8.12), for files without
   * `tfdt` boxes. Reads the head of every fragment from `firstAt` to the end of the file.
   */
  async sumDecodeTimes(firstAt: number, signal?: AbortSignalLike): Promise<void> {
    const running = new Map<number, number>();
    for (const { trackId, durations } of this.tables.values()) {
      running.set(
        trackId,
        durations.reduce((sum, ticks) => sum + ticks, 0),
      );
    }
    const decodeTimes = new Map<number, ReadonlyMap<number, number>>();
    const { size } = this.cache;
    let found = await this.#readMoof(firstAt, size, signal);
    while (found) {
      if (decodeTimes.size >= SUMMED_FRAGMENTS_LIMIT)
        throw new SluiceError("broken_media", "the file has too many fragments without decode times");
      decodeTimes.set(found.box.at, new Map(running));
      this.#parse(found.bytes, found.box, found.box.start, running);
      found = await this.#readMoof(found.box.end, size, signal);
    }
    this.#decodeTimes = decodeTimes;
  }

  /** Searches the bytes `[from, to)` for something that looks like a `moof` box, and returns the position of the first or last. */
  async find(
    from: number,
    to: number,
    which: "first" | "last",
    signal?: AbortSignalLike,
  ): Promise<number | undefined> {
    const steps = Math.ceil((to - from) / STEP_BYTES);
    for (let i = 0; i < steps; i++) {
      const start = which === "first" ? from + i * STEP_BYTES : Math.max(from, to - (i + 1) * STEP_BYTES);
      const end = which === "first" ? Math.min(to, start + STEP_BYTES) : to - i * STEP_BYTES;
      // 16 bytes more, for a box that begins at the very end of the step.
      const bytes = await this.cache.read(start, Math.min(end + 16, this.cache.size), signal);
      const found = moofIn(bytes, end - start, which);
      if (found !== undefined) return start + found;
    }
    return undefined;
  }

  /** The presentation end of a fragment over all its tracks, in seconds; -Infinity if it has no samples. */
  endOf(fragment: Fragment): number {
    let end = Number.NEGATIVE_INFINITY;
    for (const { trackId, samples } of fragment.tracks)
      for (const { pts, duration } of samples) end = Math.max(end, this.secondsOf(trackId, pts + duration));
    return end;
  }

  /** Converts a presentation time in ticks of `track` to seconds of the file's timeline. */
  secondsOf(track: number, pts: number): number {
    const table = this.tables.get(track);
    return table ? (pts - table.editTicks) / table.timescale : 0;
  }

  async #readMoof(
    at: number,
    limit: number,
    signal?: AbortSignalLike,
  ): Promise<{ box: Mp4Box; bytes: Uint8Array } | undefined> {
    for (let i = 0; i < BOXES_LIMIT && at < limit; i++) {
      const box = await boxAt(this.cache, at, signal);
      if (!box) return undefined;
      if (box.type === "moof") {
        if (box.end - box.start > MOOF_LIMIT_BYTES) return undefined;
        return { box, bytes: await this.cache.read(box.start, box.end, signal) };
      }
      at = box.end;
    }
    return undefined;
  }

  #parse(bytes: Uint8Array, box: Mp4Box, base: number, decodeTimes: Map<number, number>): Fragment {
    const [start, end] = [box.start - base, box.end - base];
    const tracks = parseMovieFragment(bytes, start, end, box.at, this.#defaults, decodeTimes);
    return { at: box.at, end: box.end, tracks };
  }

  #placeOf(fragment: Fragment): FragmentPlace | undefined {
    const own = fragment.tracks.find(
      ({ trackId, samples }) => trackId === this.leading && samples.length > 0,
    );
    if (!own) return undefined;
    const key = own.samples.findIndex(({ isKey }) => isKey);
    const sample = Math.max(0, key);
    const seconds = this.secondsOf(this.leading, own.samples[sample]!.pts);
    return { at: fragment.at, next: fragment.end, sample, seconds, isKey: key >= 0 };
  }
}

function samplesOf(table: Mp4Samples): TrackFragment {
  const keys = table.keys && new Set(table.keys);
  const samples = Array.from({ length: table.count }, (_, i) => ({
    at: table.offsets[i]!,
    size: table.sizes[i]!,
    pts: table.pts[i]!,
    duration: table.durations[i]!,
    isKey: keys?.has(i) ?? true,
  }));
  return { trackId: table.trackId, samples };
}

/** Finds a `moof` box before `limit` by a plausible size, its type, and the `mfhd` box that it begins with (8.8.4). */
function moofIn(bytes: Uint8Array, limit: number, which: "first" | "last"): number | undefined {
  let last: number | undefined;
  for (let at = bytes.indexOf(MOOF[0]!, 4); at >= 0 && at < limit + 4; at = bytes.indexOf(MOOF[0]!, at + 1)) {
    if (!hasName(bytes, at, MOOF) || !hasName(bytes, at + 8, MFHD)) continue;
    const size = readU32(bytes, at - 4);
    if (size < 24 || size > MOOF_LIMIT_BYTES) continue;
    if (which === "first") return at - 4;
    last = at - 4;
  }
  return last;
}

function hasName(bytes: Uint8Array, at: number, name: Uint8Array): boolean {
  return at + 4 <= bytes.length && name.every((byte, i) => bytes[at + i] === byte);
}
