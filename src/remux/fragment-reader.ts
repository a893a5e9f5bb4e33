import type { AbortSignalLike } from "../base/byte-source.ts";
import { SluiceError } from "../base/errors.ts";
import { readMp4Box } from "../media/mp4-boxes.ts";
import type { MovieSample } from "../media/mp4-moof.ts";
import { reorderTicks } from "../media/timestamps.ts";
import type { FragmentBorder, FragmentBorders } from "./fragment-finder.ts";
import type { Fragment, Fragments } from "./fragments.ts";
import type { SourceTrack } from "./media-tracks.ts";
import { boxAt } from "./mp4-layout.ts";
import type { OwnedMemory } from "./owned-memory.ts";
import {
  type PacketReader,
  SEGMENT_LIMIT_BYTES,
  SEGMENT_LIMIT_PACKETS,
  type SegmentBounds,
} from "./packet-reader.ts";
import type { TsMuxPacket } from "./ts-mux-input.ts";

/** Enough frames to see the reordering of an encoder; a whole fragment is taken, as far as it goes. */
const REORDER_FRAMES = 32;
const REORDER_FRAMES_LIMIT = 250;
/** How far the first packet of a track may lie behind the first fragment. */
const FIRST_PACKET_BYTES = 32 * 1024 * 1024;
/** Boxes of one fragment behind its `moof`. */
const TAIL_BOXES = 64;

/**
 * Reads the packets of a fragmented MP4 file. A segment is what lies in the file between two borders, of all tracks: it is read in
 * one piece, nothing is looked for twice, none lost or doubled.
 */
export class FragmentReader implements PacketReader {
  readonly #fragments: Fragments;
  readonly #borders: FragmentBorders;
  readonly #firstAt: number;

  constructor(fragments: Fragments, borders: FragmentBorders, firstAt: number) {
    this.#fragments = fragments;
    this.#borders = borders;
    this.#firstAt = firstAt;
  }

  async read(
    tracks: readonly SourceTrack[],
    bounds: SegmentBounds,
    memory: OwnedMemory,
    signal?: AbortSignalLike,
  ) {
    const isWhole = bounds.startSeconds === Number.NEGATIVE_INFINITY;
    const first = { at: this.#firstAt, sample: 0, seconds: bounds.startSeconds };
    const start = isWhole ? first : await this.#borders.find(bounds.startSeconds, signal);
    const isLast = bounds.endSeconds === Number.POSITIVE_INFINITY;
    const end = isLast ? undefined : await this.#borders.find(bounds.endSeconds, signal);
    return start ? this.#between(tracks, start, end, memory, signal) : [];
  }

  async first(track: SourceTrack, signal?: AbortSignalLike): Promise<TsMuxPacket> {
    const limit = Math.min(this.#fragments.cache.size, this.#firstAt + FIRST_PACKET_BYTES);
    let at = this.#firstAt;
    for (;;) {
      const fragment = await this.#fragments.next(at, limit, signal);
      if (!fragment) {
        throw new SluiceError("broken_media", `the ${track.kind} track has no packets at its start`);
      }
      for (const { trackId, samples } of fragment.tracks) {
        const sample = samples[0];
        if (trackId !== track.id || !sample) continue;
        this.#check(sample.at, sample.size, 0, this.#fragments.cache.size);
        const data = await this.#fragments.cache.read(sample.at, sample.at + sample.size, signal);
        return this.#packet(track, 0, sample, data);
      }
      at = fragment.end;
    }
  }

  async reorderSeconds(track: SourceTrack, signal?: AbortSignalLike): Promise<number> {
    const times: number[] = [];
    let at = this.#firstAt;
    while (times.length < REORDER_FRAMES) {
      const fragment = await this.#fragments.next(at, this.#fragments.cache.size, signal);
      if (!fragment) break;
      for (const { trackId, samples } of fragment.tracks)
        if (trackId === track.id) for (const { shown } of samples) times.push(shown);
      at = fragment.end;
    }
    const scale = this.#fragments.tables.get(track.id)?.timescale ?? 1;
    return reorderTicks(times.slice(0, REORDER_FRAMES_LIMIT)) / scale;
  }

  close(): void {}

  async #between(
    tracks: readonly SourceTrack[],
    start: FragmentBorder,
    end: FragmentBorder | undefined,
    memory: OwnedMemory,
    signal?: AbortSignalLike,
  ): Promise<TsMuxPacket[]> {
    const to = await this.#endOf(end, signal);
    if (to - start.at > SEGMENT_LIMIT_BYTES)
      throw new SluiceError("broken_media", `a segment of ${to - start.at} bytes: too few key frames`);
    if (to <= start.at) return [];
    const range = { start: start.at, end: to };
    const bytes = memory.own(await this.#fragments.cache.source.read(range, signal ? { signal } : {}));
    const byTrack: TsMuxPacket[][] = tracks.map(() => []);
    let count = 0;
    for (const fragment of this.#fragmentsIn(bytes, start.at)) {
      for (const { trackId, samples } of fragment.tracks) {
        const position = tracks.findIndex(({ id }) => id === trackId);
        if (position < 0) continue;
        const own = this.#within(fragment, trackId, samples, start, end);
        count += own.length;
        if (count > SEGMENT_LIMIT_PACKETS) throw new SluiceError("broken_media", "too many packets");
        for (const sample of own) {
          this.#check(sample.at, sample.size, start.at, to);
          const from = sample.at - start.at;
          const data = bytes.subarray(from, from + sample.size);
          byTrack[position]!.push(this.#packet(tracks[position]!, position, sample, data));
        }
      }
    }
    return byTrack.flat();
  }

  /** Where the bytes of a segment end: at the next border, or behind its fragment where that is cut in two. */
  async #endOf(end: FragmentBorder | undefined, signal?: AbortSignalLike): Promise<number> {
    const { cache } = this.#fragments;
    if (!end) return cache.size;
    if (end.sample === 0) return end.at;
    const moof = await this.#fragments.next(end.at, cache.size, signal);
    let at = moof?.end ?? end.at;
    for (let i = 0; i < TAIL_BOXES; i++) {
      const box = await boxAt(cache, at, signal);
      if (!box || box.type === "moof") break;
      at = box.end;
    }
    return at;
  }

  *#fragmentsIn(bytes: Uint8Array, base: number): Generator<Fragment> {
    let at = 0;
    if (base === 0 && this.#fragments.head) yield this.#fragments.head;
    while (at < bytes.length) {
      const box = readMp4Box(bytes, at, base);
      if (!box) return;
      if (box.type === "moof" && box.end - base <= bytes.length) {
        yield this.#fragments.parse(bytes, box, base);
      }
      at = box.end - base;
    }
  }

  /**
   * The samples of a fragment between two borders. Both ends of a border decide alike: the leading track is parted by number, the
   * others by time.
   */
  #within(
    fragment: Fragment,
    trackId: number,
    samples: MovieSample[],
    start: FragmentBorder,
    end: FragmentBorder | undefined,
  ): MovieSample[] {
    const isParted = (border: FragmentBorder | undefined) => border?.at === fragment.at && border.sample > 0;
    if (!isParted(start) && !isParted(end)) return samples;
    const isBefore = (border: FragmentBorder | undefined, sample: MovieSample, index: number) => {
      if (!border || !isParted(border)) return border === end;
      if (trackId === this.#fragments.leading) return index < border.sample;
      return this.#fragments.secondsOf(trackId, sample.shown) < border.seconds;
    };
    return samples.filter((sample, i) => !isBefore(start, sample, i) && isBefore(end, sample, i));
  }

  #check(at: number, size: number, from: number, to: number): void {
    if (at < from || at + size > to)
      throw new SluiceError("broken_media", `a sample at ${at}, outside of its segment`);
  }

  #packet(source: SourceTrack, track: number, sample: MovieSample, data: Uint8Array): TsMuxPacket {
    const scale = this.#fragments.tables.get(source.id)?.timescale ?? 1;
    return {
      track,
      ptsSeconds: this.#fragments.secondsOf(source.id, sample.shown),
      durationSeconds: sample.duration / scale,
      isKey: source.kind === "audio" || sample.isKey,
      data,
    };
  }
}
