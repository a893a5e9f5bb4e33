import { readU32 } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";
import { eachMp4Box, findMp4Box, type Mp4Box, readU64 } from "./mp4-boxes.ts";

/** What holds for the samples of a track unless a fragment says otherwise (ISO 14496-12 8.8.3). */
export interface SampleDefaults {
  readonly duration: number;
  readonly size: number;
  readonly flags: number;
}

/** One sample of a fragment; times in ticks of its track, the edit list not yet subtracted. */
export interface MovieSample {
  /** Where it lies in the file. */
  readonly at: number;
  readonly size: number;
  readonly shown: number;
  readonly duration: number;
  readonly isKey: boolean;
}

/** The samples of one track in a fragment, in decode order. */
export interface TrackFragment {
  readonly trackId: number;
  readonly samples: MovieSample[];
}

/** More is no fragment. */
const SAMPLES_LIMIT = 200_000;
/** The sample flag "is not a sync sample" (8.8.3.1). */
const NON_SYNC = 0x00010000;
const NO_DEFAULTS: SampleDefaults = { duration: 0, size: 0, flags: 0 };

/** The defaults of each track, by its id, from the content of a `moov` box. */
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
 * The samples that a `moof` box tells of (8.8.4 to 8.8.12). Its content lies in `bytes` from `start` to `end`, the box itself at
 * `moofAt` of the file. Throws {@link DecodeError}, also where a track does not tell its decode time (`tfdt`).
 */
export function parseMovieFragment(
  bytes: Uint8Array,
  start: number,
  end: number,
  moofAt: number,
  defaults: ReadonlyMap<number, SampleDefaults>,
): TrackFragment[] {
  const tracks: TrackFragment[] = [];
  let dataEnd = moofAt;
  eachMp4Box(bytes, start, end, (box) => {
    if (box.type !== "traf") return;
    const parsed = parseTrack(bytes, box, moofAt, dataEnd, defaults);
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
): { track: TrackFragment; dataEnd: number } {
  const head = findMp4Box(bytes, traf.start, traf.end, ["tfhd"]);
  if (!head || head.end - head.start < 8) throw new DecodeError("traf", traf.at, "no tfhd box");
  const flags = readU32(bytes, head.start);
  const trackId = readU32(bytes, head.start + 4);
  let at = head.start + 8;
  const next = (flag: number) => {
    if ((flags & flag) === 0) return undefined;
    at += 4;
    if (at > head.end) throw new DecodeError("tfhd", head.at, "a cut box");
    return readU32(bytes, at - 4);
  };
  let base = (flags & 0x020000) !== 0 ? moofAt : dataEnd;
  if ((flags & 1) !== 0) {
    if (at + 8 > head.end) throw new DecodeError("tfhd", head.at, "a cut box");
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
    decoded: decodeTime(bytes, traf),
    samples: [],
  };
  eachMp4Box(bytes, traf.start, traf.end, (box) => {
    if (box.type === "trun") parseRun(bytes, box, run);
  });
  return { track: { trackId, samples: run.samples }, dataEnd: run.dataAt };
}

interface Run extends SampleDefaults {
  readonly base: number;
  dataAt: number;
  decoded: number;
  readonly samples: MovieSample[];
}

function decodeTime(bytes: Uint8Array, traf: Mp4Box): number {
  const box = findMp4Box(bytes, traf.start, traf.end, ["tfdt"]);
  const isLong = box !== undefined && bytes[box.start] === 1;
  if (!box || box.end - box.start < (isLong ? 12 : 8))
    throw new DecodeError("traf", traf.at, "a fragment that does not tell its time");
  return isLong ? readU64(bytes, box.start + 4) : readU32(bytes, box.start + 4);
}

function parseRun(bytes: Uint8Array, box: Mp4Box, run: Run): void {
  if (box.end - box.start < 8) throw new DecodeError("trun", box.at, "a cut box");
  const flags = readU32(bytes, box.start) & 0xffffff;
  const count = readU32(bytes, box.start + 4);
  let at = box.start + 8;
  const heads = ((flags & 1) !== 0 ? 4 : 0) + ((flags & 4) !== 0 ? 4 : 0);
  let entryBytes = 0;
  for (const flag of [0x100, 0x200, 0x400, 0x800]) if ((flags & flag) !== 0) entryBytes += 4;
  if (heads + count * entryBytes > box.end - at || run.samples.length + count > SAMPLES_LIMIT)
    throw new DecodeError("trun", box.at, `${count} samples in ${box.end - box.start} bytes`);
  const next = () => {
    at += 4;
    return readU32(bytes, at - 4);
  };
  if ((flags & 1) !== 0) run.dataAt = run.base + (next() | 0);
  const firstFlags = (flags & 4) !== 0 ? next() : undefined;
  for (let i = 0; i < count; i++) {
    const duration = (flags & 0x100) !== 0 ? next() : run.duration;
    const size = (flags & 0x200) !== 0 ? next() : run.size;
    const others = i === 0 && firstFlags !== undefined ? firstFlags : run.flags;
    const own = (flags & 0x400) !== 0 ? next() : others;
    // Signed in version 1; writers put negative ones into version 0 too.
    const shift = (flags & 0x800) !== 0 ? next() | 0 : 0;
    const isKey = (own & NON_SYNC) === 0;
    run.samples.push({ at: run.dataAt, size, shown: run.decoded + shift, duration, isKey });
    run.dataAt += size;
    run.decoded += duration;
  }
}
