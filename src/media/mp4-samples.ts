import { latin1Text, readU16, readU32 } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";
import { eachMp4Box, findMp4Box, type Mp4Box, readU64 } from "./mp4-boxes.ts";

/** Limit of samples: eleven days of video. Larger tables do not fit in memory. */
const SAMPLES_LIMIT = 24_000_000;

const TRACKS_LIMIT = 128;

/** The rate of an edit: 1 as a fixed-point number with 16 bits of fraction. */
const NORMAL_RATE = 0x10000;

/** Positions and times of all samples of a track (ISO 14496-12 8.6, 8.7), in decode order. */
export interface Mp4Samples {
  readonly trackId: number;
  /** Handler type: `vide`, `soun`, `text`, `sbtl`, `subt`, … */
  readonly handler: string;
  /** Type of the first sample entry: `avc1`, `tx3g`, … */
  readonly entryType: string;
  /** Timed text of which all samples are forced: only essential text, such as translations of signs (TS 26.245 5.16). */
  readonly isForced: boolean;
  /** ISO 639-2, from `mdhd`; `und` if invalid. */
  readonly language: string;
  readonly timescale: number;
  /** To subtract from presentation times: the skipped start of the media minus the initial delay of the edit list. */
  readonly editTicks: number;
  /** True if the edit list skips, repeats, interrupts or slows down parts of the media. */
  readonly hasCuts: boolean;
  /** Samples before the first one that is not completely in the file: a truncated file plays up to there. */
  readonly count: number;
  readonly offsets: Float64Array;
  readonly sizes: Uint32Array;
  /** Presentation times in ticks, before `editTicks` is subtracted. */
  readonly pts: Float64Array;
  readonly durations: Uint32Array;
  /** Indexes of the key frames; undefined if all samples are key frames. */
  readonly keys: Uint32Array | undefined;
}

/**
 * Parses the sample tables of all tracks from the content of a `moov` box. `fileBytes` is the file size, to reject impossible tables.
 * Throws {@link DecodeError} if a table is missing or invalid, or sizes are compact (`stz2`).
 */
export function parseMp4Samples(moov: Uint8Array, fileBytes: number): Mp4Samples[] {
  const movie = findMp4Box(moov, 0, moov.length, ["mvhd"]);
  const movieScale = movie ? timescaleOf(moov, movie) : 1000;
  const tracks: Mp4Samples[] = [];
  eachMp4Box(moov, 0, moov.length, (box) => {
    if (box.type === "trak" && tracks.length < TRACKS_LIMIT)
      tracks.push(parseTrack(moov, box, movieScale, fileBytes));
  });
  return tracks;
}

function parseTrack(moov: Uint8Array, trak: Mp4Box, movieScale: number, fileBytes: number): Mp4Samples {
  const need = (path: string[]) => {
    const box = findMp4Box(moov, trak.start, trak.end, path);
    if (!box) throw new DecodeError("MP4 track", trak.at, `missing ${path.at(-1)} box`);
    return box;
  };
  const header = need(["tkhd"]);
  const media = need(["mdia", "mdhd"]);
  const handler = need(["mdia", "hdlr"]);
  const stbl = need(["mdia", "minf", "stbl"]);
  const entries = need(["mdia", "minf", "stbl", "stsd"]);
  const timescale = timescaleOf(moov, media);
  if (timescale === 0) throw new DecodeError("MP4 track", media.at, "timescale is 0");
  const table = (type: string) => findMp4Box(moov, stbl.start, stbl.end, [type]);
  const sizes = parseSizes(moov, table("stsz"), fileBytes);
  const offsets = parseOffsets(moov, table("stco") ?? table("co64"), table("stsc"), sizes);
  const count = countWithin(offsets, sizes, fileBytes);
  const times = parseTimes(moov, table("stts"), table("ctts"), count);
  const editList = findMp4Box(moov, trak.start, trak.end, ["edts", "elst"]);
  const entryType = latin1Text(moov.subarray(entries.start + 12, entries.start + 16));
  return {
    trackId: readU32(moov, header.start + (moov[header.start] === 1 ? 20 : 12)),
    handler: latin1Text(moov.subarray(handler.start + 8, handler.start + 12)),
    entryType,
    isForced:
      entryType === "tx3g" && entries.start + 28 <= entries.end && (moov[entries.start + 24]! & 0x80) !== 0,
    language: packedLanguage(readU16(moov, media.start + (moov[media.start] === 1 ? 32 : 20))),
    timescale,
    ...(editList ? parseEdits(moov, editList, movieScale, timescale) : { editTicks: 0, hasCuts: false }),
    count,
    offsets,
    sizes,
    ...times,
    keys: parseKeys(moov, table("stss"), count),
  };
}

function timescaleOf(moov: Uint8Array, header: Mp4Box): number {
  const at = header.start + (moov[header.start] === 1 ? 20 : 12);
  if (at + 4 > header.end) throw new DecodeError("MP4", header.at, "truncated header");
  return readU32(moov, at);
}

/** Decodes three letters of five bits each (8.4.2.3). */
function packedLanguage(packed: number): string {
  const letters = [packed >> 10, packed >> 5, packed].map((bits) => 0x60 + (bits & 0x1f));
  return letters.every((code) => code >= 0x61 && code <= 0x7a) ? String.fromCharCode(...letters) : "und";
}

/** The number of samples before the first one that ends behind the end of the file. */
function countWithin(offsets: Float64Array, sizes: Uint32Array, fileBytes: number): number {
  const cut = offsets.findIndex((offset, i) => offset + sizes[i]! > fileBytes);
  return cut < 0 ? offsets.length : cut;
}

/** The number of entries of `entryBytes` that a table states, limited to its size. */
function entriesOf(moov: Uint8Array, box: Mp4Box, head: number, entryBytes: number): number {
  if (box.end - box.start < head) return 0;
  return Math.min(readU32(moov, box.start + head - 4), Math.floor((box.end - box.start - head) / entryBytes));
}

/** Reads sample sizes. A constant size has no table, so the file size limits the count. */
function parseSizes(moov: Uint8Array, box: Mp4Box | undefined, fileBytes: number): Uint32Array {
  if (!box || box.end - box.start < 12) return new Uint32Array(0);
  const fixed = readU32(moov, box.start + 4);
  const claimed = readU32(moov, box.start + 8);
  if (claimed > SAMPLES_LIMIT) throw new DecodeError("stsz", box.at, `${claimed} samples`);
  if (fixed > 0) return new Uint32Array(Math.min(claimed, Math.floor(fileBytes / fixed))).fill(fixed);
  const sizes = new Uint32Array(entriesOf(moov, box, 12, 4));
  for (let i = 0; i < sizes.length; i++) sizes[i] = readU32(moov, box.start + 12 + i * 4);
  return sizes;
}

function parseTimes(moov: Uint8Array, stts: Mp4Box | undefined, ctts: Mp4Box | undefined, count: number) {
  const pts = new Float64Array(count);
  const durations = new Uint32Array(count);
  let [sample, time] = [0, 0];
  const runs = stts ? entriesOf(moov, stts, 8, 8) : 0;
  for (let i = 0; i < runs && sample < count; i++) {
    const from = stts!.start + 8 + i * 8;
    const end = Math.min(count, sample + readU32(moov, from));
    const delta = readU32(moov, from + 4);
    for (; sample < end; sample++) {
      pts[sample] = time;
      durations[sample] = delta;
      time += delta;
    }
  }
  if (sample < count)
    throw new DecodeError("stts", stts?.at ?? 0, `times for only ${sample} of ${count} samples`);
  sample = 0;
  const shifts = ctts ? entriesOf(moov, ctts, 8, 8) : 0;
  for (let i = 0; i < shifts && sample < count; i++) {
    const from = ctts!.start + 8 + i * 8;
    const end = Math.min(count, sample + readU32(moov, from));
    // Signed in version 1. Some writers store negative offsets in version 0 too.
    const compositionOffset = readU32(moov, from + 4) | 0;
    for (; sample < end; sample++) pts[sample]! += compositionOffset;
  }
  return { pts, durations };
}

function parseOffsets(
  moov: Uint8Array,
  chunks: Mp4Box | undefined,
  stsc: Mp4Box | undefined,
  sizes: Uint32Array,
): Float64Array {
  const offsets = new Float64Array(sizes.length);
  if (sizes.length === 0) return offsets;
  if (!chunks || !stsc) throw new DecodeError("MP4 track", 0, "missing chunk table");
  const isLong = chunks.type === "co64";
  const chunkCount = entriesOf(moov, chunks, 8, isLong ? 8 : 4);
  const runs = entriesOf(moov, stsc, 8, 12);
  let sample = 0;
  for (let run = 0; run < runs && sample < sizes.length; run++) {
    const from = stsc.start + 8 + run * 12;
    const first = readU32(moov, from) - 1;
    const next = run + 1 < runs ? readU32(moov, from + 12) - 1 : chunkCount;
    const perChunk = readU32(moov, from + 4);
    for (
      let chunk = first;
      chunk >= 0 && chunk < Math.min(next, chunkCount) && sample < sizes.length;
      chunk++
    ) {
      const place = chunks.start + 8 + chunk * (isLong ? 8 : 4);
      let at = isLong ? readU64(moov, place) : readU32(moov, place);
      const end = Math.min(sizes.length, sample + perChunk);
      for (; sample < end; sample++) {
        offsets[sample] = at;
        at += sizes[sample]!;
      }
    }
  }
  if (sample < sizes.length) {
    throw new DecodeError("stsc", stsc.at, `chunks for only ${sample} of ${sizes.length} samples`);
  }
  return offsets;
}

function parseKeys(moov: Uint8Array, stss: Mp4Box | undefined, count: number): Uint32Array | undefined {
  if (!stss) return undefined;
  const keys = new Uint32Array(entriesOf(moov, stss, 8, 4));
  let length = 0;
  for (let i = 0; i < keys.length; i++) {
    const key = readU32(moov, stss.start + 8 + i * 4) - 1;
    if (key >= 0 && key < count && (length === 0 || key > keys[length - 1]!)) keys[length++] = key;
  }
  return keys.slice(0, length);
}

/**
 * Reads an edit list (8.6.6): empty edits at its start delay a track, and the first other edit sets where it begins. Edits that continue
 * where the previous one ends change nothing; all others are cuts.
 */
function parseEdits(
  moov: Uint8Array,
  box: Mp4Box,
  movieScale: number,
  timescale: number,
): Pick<Mp4Samples, "editTicks" | "hasCuts"> {
  const isLong = moov[box.start] === 1;
  const entryBytes = isLong ? 20 : 12;
  const count = entriesOf(moov, box, 8, entryBytes);
  const ticksOf = (duration: number) => Math.round((duration / Math.max(1, movieScale)) * timescale);
  // Durations are whole units of the movie's scale.
  const tolerance = 1 + ticksOf(2);
  let delay = 0;
  let first: number | undefined;
  /** Where the next edit continues; undefined after a pause. */
  let next: number | undefined;
  let hasCuts = false;
  for (let i = 0; i < count; i++) {
    const from = box.start + 8 + i * entryBytes;
    const duration = isLong ? readU64(moov, from) : readU32(moov, from);
    const high = isLong ? readU32(moov, from + 8) | 0 : 0;
    const start = isLong ? high * 2 ** 32 + readU32(moov, from + 12) : readU32(moov, from + 4) | 0;
    if (first === undefined) {
      if (start === -1) delay += duration;
      else [first, next] = [start, start + ticksOf(duration)];
    } else if (duration > 0) {
      const rate = readU32(moov, from + entryBytes - 4);
      const isNext = next !== undefined && Math.abs(start - next) <= tolerance && rate === NORMAL_RATE;
      // A pause after the last part changes nothing.
      hasCuts ||= start !== -1 && !isNext;
      next = start === -1 ? undefined : start + ticksOf(duration);
    }
  }
  return { editTicks: (first ?? 0) - ticksOf(delay), hasCuts };
}
