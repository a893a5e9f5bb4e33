import type { AbortSignalLike } from "../base/byte-source.ts";
import { latin1Bytes, readU32 } from "../base/bytes.ts";
import type { Mp4Box } from "../media/mp4-boxes.ts";
import { parseMovieFragment, type SampleDefaults, type TrackFragment } from "../media/mp4-moof.ts";
import type { Mp4Samples } from "../media/mp4-samples.ts";
import type { BlockCache } from "./block-cache.ts";
import { boxAt } from "./mp4-layout.ts";

/** One fragment of a file, its samples read. */
export interface Fragment {
  /** Where its `moof` box lies. */
  readonly at: number;
  /** Where that box ends. */
  readonly end: number;
  readonly tracks: readonly TrackFragment[];
}

/** A fragment by what its leading track says. */
export interface FragmentPlace {
  readonly at: number;
  /** Where to look for the next one. */
  readonly next: number;
  /** Its first key frame of the leading track, or its first sample where it has none. */
  readonly sample: number;
  /** When that is shown, in the time of the file. */
  readonly seconds: number;
  readonly isKey: boolean;
}

/** The head of a fragment of many frames takes some 16 bytes for each. */
const MOOF_LIMIT_BYTES = 16 * 1024 * 1024;
/** Boxes between two fragments of the leading track: other tracks' fragments, `styp`, `emsg`, `prft` … */
const BOXES_LIMIT = 4096;
const STEP_BYTES = 256 * 1024;
const MOOF = latin1Bytes("moof");
const MFHD = latin1Bytes("mfhd");

/** Reads the heads of fragments, wherever in the file they lie. */
export class Fragments {
  readonly cache: BlockCache;
  readonly tables: ReadonlyMap<number, Mp4Samples>;
  readonly leading: number;
  /** Samples that `moov` itself tells of, before the fragments. */
  readonly head: Fragment | undefined;
  readonly #defaults: ReadonlyMap<number, SampleDefaults>;

  /** `tables` are those of `moov`: they tell timescales and edit lists. `firstBoxEnd` is where the first box of the file ends. */
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

  /** The samples of a `moof` box whose content lies in `bytes`, the byte 0 of which lies at `base` in the file. */
  parse(bytes: Uint8Array, box: Mp4Box, base: number): Fragment {
    const tracks = parseMovieFragment(bytes, box.start - base, box.end - base, box.at, this.#defaults);
    return { at: box.at, end: box.end, tracks };
  }

  /** The first fragment that begins at or after a box at `at`, and before `limit`. */
  async next(at: number, limit: number, signal?: AbortSignalLike): Promise<Fragment | undefined> {
    if (at === 0 && this.head) return this.head;
    for (let i = 0; i < BOXES_LIMIT && at < limit; i++) {
      const box = await boxAt(this.cache, at, signal);
      if (!box) return undefined;
      if (box.type === "moof") {
        if (box.end - box.start > MOOF_LIMIT_BYTES) return undefined;
        return this.parse(await this.cache.read(box.start, box.end, signal), box, box.start);
      }
      at = box.end;
    }
    return undefined;
  }

  /** The first fragment with samples of the leading track that begins at or after a box at `at`, and before `limit`. */
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

  /** Where a `moof` box seems to begin between two places of the file: the first one, or the last one. */
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
      // Some bytes more, for a box that begins at the very end of the step.
      const bytes = await this.cache.read(start, Math.min(end + 16, this.cache.size), signal);
      const found = moofIn(bytes, end - start, which);
      if (found !== undefined) return start + found;
    }
    return undefined;
  }

  /** When the last sample of a fragment has been shown, of whatever track. */
  endOf(fragment: Fragment): number {
    let end = Number.NEGATIVE_INFINITY;
    for (const { trackId, samples } of fragment.tracks)
      for (const { shown, duration } of samples)
        end = Math.max(end, this.secondsOf(trackId, shown + duration));
    return end;
  }

  /** In the time of the file. */
  secondsOf(track: number, shown: number): number {
    const table = this.tables.get(track);
    return table ? (shown - table.editTicks) / table.timescale : 0;
  }

  #placeOf(fragment: Fragment): FragmentPlace | undefined {
    const own = fragment.tracks.find(
      ({ trackId, samples }) => trackId === this.leading && samples.length > 0,
    );
    if (!own) return undefined;
    const key = own.samples.findIndex(({ isKey }) => isKey);
    const sample = Math.max(0, key);
    const seconds = this.secondsOf(this.leading, own.samples[sample]!.shown);
    return { at: fragment.at, next: fragment.end, sample, seconds, isKey: key >= 0 };
  }
}

function samplesOf(table: Mp4Samples): TrackFragment {
  const keys = table.keys && new Set(table.keys);
  const samples = Array.from({ length: table.count }, (_, i) => ({
    at: table.offsets[i]!,
    size: table.sizes[i]!,
    shown: table.shown[i]!,
    duration: table.durations[i]!,
    isKey: keys?.has(i) ?? true,
  }));
  return { trackId: table.trackId, samples };
}

/** A `moof` box that begins before `limit`: a likely size, its name, and the `mfhd` it begins with (ISO 14496-12 8.8.4). */
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
