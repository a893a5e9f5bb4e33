import { MP4 } from "mediabunny";
import { concatBytes, latin1Bytes, readU32, writeU32 } from "../../base/bytes.ts";
import { DecodeError } from "../../base/errors.ts";
import { eachMp4Box, findMp4Box, type Mp4Box } from "../../media/mp4-boxes.ts";
import { buildFragment, type FragmentTrack } from "../../media/mp4-fragment.ts";
import {
  parseMovieFragment,
  parseTrackExtends,
  type SampleDefaults,
  type TimedFragment,
} from "../../media/mp4-moof.ts";
import { type Mp4Samples, parseMp4Samples } from "../../media/mp4-samples.ts";
import { BlockCache } from "../block-cache.ts";
import { readTracks, type SourceTrack } from "../media-tracks.ts";
import { checkSegmentSize } from "../packet-reader.ts";
import type { TsMuxPacket } from "../ts-mux-input.ts";

/** The boxes of an initialization segment that contain those of its tracks. */
const CONTAINERS = new Set(["moov", "mvex"]);

/** One `moof` box of a segment. */
interface ReadFragment {
  readonly sequence: number;
  readonly tracks: readonly TimedFragment[];
}

/** The initialization segment of a stream in fragmented MP4 (ISO 14496-12 8.8): its tracks, and how their segments are read. */
export class FragmentedStream {
  /** The initialization segment. */
  readonly init: Uint8Array<ArrayBuffer>;
  /** One video track, then the audio tracks; that in the preferred language is first. */
  readonly tracks: readonly SourceTrack[];
  readonly #tables: ReadonlyMap<number, Mp4Samples>;
  readonly #defaults: ReadonlyMap<number, SampleDefaults>;

  private constructor(
    init: Uint8Array<ArrayBuffer>,
    tracks: readonly SourceTrack[],
    tables: readonly Mp4Samples[],
    defaults: ReadonlyMap<number, SampleDefaults>,
  ) {
    this.init = init;
    this.tracks = tracks;
    this.#tables = new Map(tables.map((table) => [table.trackId, table]));
    this.#defaults = defaults;
  }

  /**
   * Reads the tracks of `init`. `segment` is one of its segments: some codecs are known by their frames only. `language`: ISO 639-2.
   * Throws `DecodeError`, or the error of mediabunny.
   */
  static async open(
    init: Uint8Array<ArrayBuffer>,
    segment: Uint8Array,
    language: string,
  ): Promise<FragmentedStream> {
    const moov = findMp4Box(init, 0, init.length, ["moov"]);
    if (!moov) throw new DecodeError("MP4", 0, "the initialization segment has no moov box");
    const content = init.subarray(moov.start, moov.end);
    const tables = parseMp4Samples(content, init.length);
    const file = concatBytes([init, segment]);
    const source = {
      size: file.length,
      read: async ({ start, end }: { start: number; end: number }) => file.slice(start, end),
    };
    const settings = {
      language,
      targetSeconds: 0,
      signal: undefined,
      conversion: undefined,
      transcoder: undefined,
    };
    const tracks = await readTracks(new BlockCache(source), [MP4], settings);
    return new FragmentedStream(init, tracks, tables, parseTrackExtends(content));
  }

  /** Returns the initialization segment with the tracks that `keeps` accepts, by `track_ID`. */
  initOf(keeps: (trackId: number) => boolean): Uint8Array<ArrayBuffer> {
    return filterBoxes(this.init, 0, this.init.length, (box) => {
      if (box.type === "trex") return keeps(readU32(this.init, box.start + 4));
      if (box.type !== "trak") return true;
      const header = findMp4Box(this.init, box.start, box.end, ["tkhd"]);
      return !header || keeps(readU32(this.init, header.start + (this.init[header.start] === 1 ? 20 : 12)));
    });
  }

  /** Returns a segment with the tracks that `keeps` accepts. Times stay as they are. Throws `DecodeError`. */
  segmentOf(segment: Uint8Array, keeps: (trackId: number) => boolean): Uint8Array<ArrayBuffer> {
    const fragments = this.#read(segment).map(({ sequence, tracks }) => {
      const kept = tracks.filter(({ trackId, samples }) => keeps(trackId) && samples.length > 0);
      return kept.length > 0
        ? buildFragment(
            sequence,
            kept.map((track) => rewritten(segment, track)),
          )
        : new Uint8Array(0);
    });
    return concatBytes(fragments);
  }

  /** Returns the frames of one track, with `track` 0 and presentation times in seconds. Throws `DecodeError`. */
  packets(segment: Uint8Array, trackId: number): TsMuxPacket[] {
    const { timescale = 1, editTicks = 0 } = this.#tables.get(trackId) ?? {};
    return this.#read(segment)
      .flatMap(({ tracks }) => tracks)
      .filter((track) => track.trackId === trackId)
      .flatMap(({ samples }) =>
        samples.map(({ at, size, pts, duration }) => ({
          track: 0,
          ptsSeconds: (pts - editTicks) / timescale,
          durationSeconds: duration / timescale,
          isKey: true,
          data: segment.subarray(at, at + size),
        })),
      );
  }

  #read(segment: Uint8Array): ReadFragment[] {
    const fragments: ReadFragment[] = [];
    const decodeTimes = new Map<number, number>();
    let packets = 0;
    eachMp4Box(segment, 0, segment.length, ({ type, at, start, end }) => {
      if (type !== "moof") return;
      const tracks = parseMovieFragment(segment, start, end, at, this.#defaults, decodeTimes);
      for (const { samples } of tracks) {
        packets += samples.length;
        checkSegmentSize(0, packets);
        for (const sample of samples)
          if (sample.at < 0 || sample.at + sample.size > segment.length)
            throw new DecodeError("moof", at, "a sample is outside of the segment");
      }
      const header = findMp4Box(segment, start, end, ["mfhd"]);
      const sequence = header && header.end - header.start >= 8 ? readU32(segment, header.start + 4) : 0;
      fragments.push({ sequence, tracks });
    });
    return fragments;
  }
}

function rewritten(segment: Uint8Array, { trackId, decodeTime, samples }: TimedFragment): FragmentTrack {
  let dts = decodeTime;
  return {
    id: trackId,
    decodeTime,
    samples: samples.map(({ at, size, pts, duration, isKey }) => {
      const compositionOffset = pts - dts;
      dts += duration;
      return { data: segment.subarray(at, at + size), duration, isSync: isKey, compositionOffset };
    }),
  };
}

/** Copies the boxes in `[from, to)` that `keeps` accepts, and the same inside of {@link CONTAINERS}. */
function filterBoxes(
  bytes: Uint8Array,
  from: number,
  to: number,
  keeps: (box: Mp4Box) => boolean,
): Uint8Array<ArrayBuffer> {
  const parts: Uint8Array[] = [];
  eachMp4Box(bytes, from, to, (box) => {
    if (!keeps(box)) return;
    if (!CONTAINERS.has(box.type)) {
      parts.push(bytes.subarray(box.at, box.end));
      return;
    }
    const content = filterBoxes(bytes, box.start, box.end, keeps);
    const head = new Uint8Array(8);
    writeU32(head, 0, 8 + content.length);
    head.set(latin1Bytes(box.type), 4);
    parts.push(head, content);
  });
  return concatBytes(parts);
}
