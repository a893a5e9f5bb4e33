import { BufferPool } from "../base/buffer-pool.ts";
import type { AbortSignalLike } from "../base/byte-source.ts";
import { SluiceError } from "../base/errors.ts";
import type { MovieSample } from "../media/mp4-moof.ts";
import { reorderFrames, reorderTicks } from "../media/timestamps.ts";
import type { FragmentBoundaries, FragmentBoundary } from "./fragment-finder.ts";
import type { Fragment, Fragments } from "./fragments.ts";
import type { SourceTrack } from "./media-tracks.ts";
import {
  checkSegmentSize,
  type Demux,
  lastSeconds,
  type PacketReader,
  type Reordering,
  type SegmentBounds,
} from "./packet-reader.ts";
import {
  demuxedPackets,
  demuxSamples,
  type PlannedSample,
  type SampleSlice,
  sliceSamples,
} from "./sample-demuxer.ts";
import type { TsMuxPacket } from "./ts-mux-input.ts";

/** Enough frames to measure an encoder's reordering; whole fragments are read, up to the limit below. */
const REORDER_FRAMES = 32;
const REORDER_FRAMES_LIMIT = 250;
/** How far after the first fragment the first packet of a track can be. */
const FIRST_PACKET_BYTES = 32 * 1024 * 1024;
const NO_BYTES = new Uint8Array(0);

/**
 * Reads the packets of a fragmented MP4 file. A segment is the bytes of all tracks between two boundaries, read at once, so no
 * packet is lost or duplicated between segments.
 */
export class FragmentReader implements PacketReader {
  readonly #fragments: Fragments;
  readonly #boundaries: FragmentBoundaries;
  readonly #firstAt: number;
  readonly #pool = new BufferPool();

  constructor(fragments: Fragments, boundaries: FragmentBoundaries, firstAt: number) {
    this.#fragments = fragments;
    this.#boundaries = boundaries;
    this.#firstAt = firstAt;
  }

  async demux(tracks: readonly SourceTrack[], segments: readonly SegmentBounds[]): Promise<Demux> {
    return demuxSamples((signal) => this.#slices(tracks, segments, signal), this.#pool);
  }

  async tail(
    track: SourceTrack,
    segment: SegmentBounds,
    seconds: number,
    signal?: AbortSignalLike,
  ): Promise<TsMuxPacket[]> {
    const { source } = this.#fragments.cache;
    const packets = await demuxedPackets(source, await this.demux([track], [segment]), signal);
    return lastSeconds(packets, seconds);
  }

  async first(track: SourceTrack, signal?: AbortSignalLike): Promise<TsMuxPacket> {
    const limit = Math.min(this.#fragments.cache.size, this.#firstAt + FIRST_PACKET_BYTES);
    let at = this.#firstAt;
    for (;;) {
      const fragment = await this.#fragments.next(at, limit, signal);
      if (!fragment) {
        throw new SluiceError(
          "broken_media",
          `the ${track.kind} track has no packets in the first ${FIRST_PACKET_BYTES} bytes of media`,
        );
      }
      for (const { trackId, samples } of fragment.tracks) {
        const sample = samples[0];
        if (trackId !== track.id || !sample) continue;
        const packet = this.#packet(track, 0, sample);
        return {
          ...packet,
          data: await this.#fragments.cache.read(sample.at, sample.at + sample.size, signal),
        };
      }
      at = fragment.end;
    }
  }

  async reordering(track: SourceTrack, signal?: AbortSignalLike): Promise<Reordering> {
    const times: number[] = [];
    let at = this.#firstAt;
    while (times.length < REORDER_FRAMES) {
      const fragment = await this.#fragments.next(at, this.#fragments.cache.size, signal);
      if (!fragment) break;
      for (const { trackId, samples } of fragment.tracks)
        if (trackId === track.id) for (const { pts } of samples) times.push(pts);
      at = fragment.end;
    }
    const scale = this.#fragments.tables.get(track.id)?.timescale ?? 1;
    const pts = times.slice(0, REORDER_FRAMES_LIMIT);
    return { seconds: reorderTicks(pts) / scale, frames: reorderFrames(pts) };
  }

  async *#slices(
    tracks: readonly SourceTrack[],
    segments: readonly SegmentBounds[],
    signal?: AbortSignalLike,
  ): AsyncGenerator<SampleSlice> {
    const { size } = this.#fragments.cache;
    for (const { startSeconds, endSeconds } of segments) {
      const isWhole = startSeconds === Number.NEGATIVE_INFINITY;
      const first = { at: this.#firstAt, sample: 0, seconds: startSeconds };
      const start = isWhole ? first : await this.#boundaries.find(startSeconds, signal);
      const isLast = endSeconds === Number.POSITIVE_INFINITY;
      const end = isLast ? undefined : await this.#boundaries.find(endSeconds, signal);
      const until = isLast || endSeconds < segments.at(-1)!.endSeconds ? size : end?.at;
      if (start) yield* this.#between(tracks, start, end, until ?? size, signal);
    }
  }

  /** The frames of one segment, fragment by fragment. */
  async *#between(
    tracks: readonly SourceTrack[],
    start: FragmentBoundary,
    end: FragmentBoundary | undefined,
    until: number,
    signal?: AbortSignalLike,
  ): AsyncGenerator<SampleSlice> {
    const { size } = this.#fragments.cache;
    // A boundary within a fragment: the segment has its first samples.
    const limit = end === undefined ? size : end.sample > 0 ? end.at + 1 : end.at;
    let [bytes, packets] = [0, 0];
    for (let at = start.at; at < limit; ) {
      const fragment = await this.#fragments.next(at, limit, signal);
      if (!fragment) break;
      const samples = tracks.map((source, track) => this.#samples(fragment, source, track, start, end));
      for (const own of samples) {
        packets += own.length;
        for (const sample of own) bytes += sample.size;
      }
      checkSegmentSize(bytes, packets);
      if (packets > 0) yield* sliceSamples(samples, false, until);
      at = fragment.end;
    }
    yield { samples: [], endsSegment: true, until };
  }

  #samples(
    fragment: Fragment,
    source: SourceTrack,
    track: number,
    start: FragmentBoundary,
    end: FragmentBoundary | undefined,
  ): PlannedSample[] {
    const own = fragment.tracks.filter(({ trackId }) => trackId === source.id);
    return own.flatMap(({ samples }) =>
      this.#within(fragment, source.id, samples, start, end)
        // The file can be truncated within this fragment.
        .filter(({ at, size }) => at + size <= this.#fragments.cache.size)
        .map((sample) => this.#packet(source, track, sample)),
    );
  }

  /**
   * The samples of a fragment between two boundaries. A boundary within the fragment splits the leading track by sample number and the
   * other tracks by time, alike for the segments on both sides.
   */
  #within(
    fragment: Fragment,
    trackId: number,
    samples: MovieSample[],
    start: FragmentBoundary,
    end: FragmentBoundary | undefined,
  ): MovieSample[] {
    const isSplitBy = (boundary: FragmentBoundary | undefined) =>
      boundary?.at === fragment.at && boundary.sample > 0;
    if (!isSplitBy(start) && !isSplitBy(end)) return samples;
    const isBefore = (boundary: FragmentBoundary | undefined, sample: MovieSample, index: number) => {
      if (!boundary || !isSplitBy(boundary)) return boundary === end;
      if (trackId === this.#fragments.leading) return index < boundary.sample;
      return this.#fragments.secondsOf(trackId, sample.pts) < boundary.seconds;
    };
    return samples.filter((sample, i) => !isBefore(start, sample, i) && isBefore(end, sample, i));
  }

  #packet(source: SourceTrack, track: number, { at, size, ...sample }: MovieSample): PlannedSample {
    if (at < 0 || at + size > this.#fragments.cache.size)
      throw new SluiceError("broken_media", `a sample at byte ${at} is outside of the file`);
    const scale = this.#fragments.tables.get(source.id)?.timescale ?? 1;
    return {
      track,
      ptsSeconds: this.#fragments.secondsOf(source.id, sample.pts),
      durationSeconds: sample.duration / scale,
      isKey: source.kind === "audio" || sample.isKey,
      at,
      size,
      data: NO_BYTES,
    };
  }
}
