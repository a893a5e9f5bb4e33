import { readU32 } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";
import { eachMp4Box, findMp4Box, type Mp4Box, readU64 } from "./mp4-boxes.ts";

/** Sample defaults of a track, from its `trex` box (ISO 14496-12 8.8.3). A fragment can override each of them. */
export interface SampleDefaults {
  readonly duration: number;
  readonly size: number;
  readonly flags: number;
}

/** One sample of a fragment. Times are ticks of the track's timescale, before the edit list is applied. */
export interface MovieSample {
  /** Byte position in the file. */
  readonly at: number;
  readonly size: number;
  /** Presentation time. */
  readonly pts: number;
  readonly duration: number;
  readonly isKey: boolean;
}

/** The samples of one track in a fragment, in decode order. */
export interface TrackFragment {
  readonly trackId: number;
  readonly samples: MovieSample[];
}

/** A {@link TrackFragment} with its place on the decode timeline. */
export interface TimedFragment extends TrackFragment {
  /** The decode time of the first sample, in ticks. */
  readonly decodeTime: number;
}

/** A fragment with more samples is treated as hostile. */
const SAMPLES_LIMIT = 200_000;
/** The sample flag `sample_is_non_sync_sample` (8.8.3.1). */
const NON_SYNC = 0x00010000;
const NO_DEFAULTS: SampleDefaults = { duration: 0, size: 0, flags: 0 };

/** Reads the sample defaults of each track, by track id, from the content of a `moov` box. */
export function parseTrackExtends(moov: Uint8Array): Map<number, SampleDefaults> {
  const defaults = new Map<number, SampleDefaults>();
  const extend = findMp4Box(moov, 0, moov.length, ["mvex"]);
  if (!extend) return defaults;
  eachMp4Box(moov, extend.start, extend.end, ({ type, start, end }) => {
    if (type !== "trex" || end - start < 24) return;
    const [duration, size, flags] = [12, 16, 20].map((offset) => readU32(moov, start + offset));
    defaults.set(readU32(moov, start + 4), { duration: duration!, size: size!, flags: flags! });
  });
  return defaults;
}

/**
 * Parses the samples of a `moof` box (ISO 14496-12 8.8.4 to 8.8.12).
 * @param bytes holds the content of the box in `[start, end)`.
 * @param moofAt the byte position of the box in the file.
 * @param decodeTimes decode times by track id for tracks without a `tfdt` box; updated to the end of this fragment.
 * @throws {@link DecodeError} if a box is truncated, or a track has neither `tfdt` nor an entry in `decodeTimes`.
 */
export function parseMovieFragment(
  bytes: Uint8Array,
  start: number,
  end: number,
  moofAt: number,
  defaults: ReadonlyMap<number, SampleDefaults>,
  decodeTimes: Map<number, number> = new Map(),
): TimedFragment[] {
  const tracks: TimedFragment[] = [];
  let dataEnd = moofAt;
  eachMp4Box(bytes, start, end, (box) => {
    if (box.type !== "traf") return;
    const parsed = parseTrack(bytes, box, moofAt, dataEnd, defaults, decodeTimes);
    dataEnd = parsed.dataEnd;
    tracks.push(parsed.track);
  });
  return tracks;
}

function parseTrack(
  bytes: Uint8Array,
  traf: Mp4Box,
  moofAt: number,
  dataEnd: number,
  defaults: ReadonlyMap<number, SampleDefaults>,
  decodeTimes: Map<number, number>,
): { track: TimedFragment; dataEnd: number } {
  const head = findMp4Box(bytes, traf.start, traf.end, ["tfhd"]);
  if (!head || head.end - head.start < 8) throw new DecodeError("traf", traf.at, "traf has no tfhd box");
  const flags = readU32(bytes, head.start);
  const trackId = readU32(bytes, head.start + 4);
  let at = head.start + 8;
  const next = (flag: number) => {
    if ((flags & flag) === 0) return undefined;
    at += 4;
    if (at > head.end) throw new DecodeError("tfhd", head.at, "truncated box");
    return readU32(bytes, at - 4);
  };
  let base = (flags & 0x020000) !== 0 ? moofAt : dataEnd;
  if ((flags & 1) !== 0) {
    if (at + 8 > head.end) throw new DecodeError("tfhd", head.at, "truncated box");
    base = readU64(bytes, at);
    at += 8;
  }
  next(2);
  const own = defaults.get(trackId) ?? NO_DEFAULTS;
  const run: Run = {
    base,
    dataAt: base,
    duration: next(8) ?? own.duration,
    size: next(0x10) ?? own.size,
    flags: next(0x20) ?? own.flags,
    dts: readDecodeTime(bytes, traf) ?? decodeTimes.get(trackId) ?? Number.NaN,
    samples: [],
  };
  if (Number.isNaN(run.dts))
    throw new DecodeError("traf", traf.at, "no tfdt box, and no decode time is known");
  const decodeTime = run.dts;
  eachMp4Box(bytes, traf.start, traf.end, (box) => {
    if (box.type === "trun") parseRun(bytes, box, run);
  });
  decodeTimes.set(trackId, run.dts);
  return { track: { trackId, decodeTime, samples: run.samples }, dataEnd: run.dataAt };
}

interface Run extends SampleDefaults {
  readonly base: number;
  dataAt: number;
  dts: number;
  readonly samples: MovieSample[];
}

/** Reads `baseMediaDecodeTime` (8.8.12); undefined if there is no usable `tfdt` box. */
function readDecodeTime(bytes: Uint8Array, traf: Mp4Box): number | undefined {
  const box = findMp4Box(bytes, traf.start, traf.end, ["tfdt"]);
  const isLong = box !== undefined && bytes[box.start] === 1;
  if (!box || box.end - box.start < (isLong ? 12 : 8)) return undefined;
  return isLong ? readU64(bytes, box.start + 4) : readU32(bytes, box.start + 4);
}

function parseRun(bytes: Uint8Array, box: Mp4Box, run: Run): void {
  if (box.end - box.start < 8) throw new DecodeError("trun", box.at, "truncated box");
  const flags = readU32(bytes, box.start) & 0xffffff;
  const count = readU32(bytes, box.start + 4);
  let at = box.start + 8;
  const heads = ((flags & 1) !== 0 ? 4 : 0) + ((flags & 4) !== 0 ? 4 : 0);
  let entryBytes = 0;
  for (const flag of [0x100, 0x200, 0x400, 0x800]) if ((flags & flag) !== 0) entryBytes += 4;
  if (heads + count * entryBytes > box.end - at || run.samples.length + count > SAMPLES_LIMIT)
    throw new DecodeError("trun", box.at, `${count} samples do not fit in ${box.end - box.start} bytes`);
  const next = () => {
    at += 4;
    return readU32(bytes, at - 4);
  };
  if ((flags & 1) !== 0) run.dataAt = run.base + (next() | 0);
  const firstFlags = (flags & 4) !== 0 ? next() : undefined;
  for (let i = 0; i < count; i++) {
    const duration = (flags & 0x100) !== 0 ? next() : run.duration;
    const size = (flags & 0x200) !== 0 ? next() : run.size;
    const defaultFlags = i === 0 && firstFlags !== undefined ? firstFlags : run.flags;
    const sampleFlags = (flags & 0x400) !== 0 ? next() : defaultFlags;
    // Signed in version 1. Some writers store negative offsets in version 0 too.
    const compositionOffset = (flags & 0x800) !== 0 ? next() | 0 : 0;
    const isKey = (sampleFlags & NON_SYNC) === 0;
    run.samples.push({ at: run.dataAt, size, pts: run.dts + compositionOffset, duration, isKey });
    run.dataAt += size;
    run.dts += duration;
  }
}
