import { readU16, readU32 } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";
import { eachMp4Box, readU64 } from "./mp4-boxes.ts";

/** An index entry: the position of a fragment at which decoding can start. */
export interface FragmentEntry {
  /** In ticks of the index or of the track. */
  readonly time: number;
  /** Byte position of its first box in the file. */
  readonly at: number;
  /** Index of the sample within its track and fragment, from 0. */
  readonly sample: number;
}

/** A segment index (`sidx`, ISO 14496-12 8.16.3). */
export interface SegmentIndex {
  readonly trackId: number;
  readonly timescale: number;
  readonly entries: readonly FragmentEntry[];
  /** End time of the last entry. */
  readonly end: number;
  /** True if entries refer to further indexes, which are not followed. */
  readonly isNested: boolean;
}

/** Limit of entries: a week of fragments of 0.1 s. */
const ENTRIES_LIMIT = 6_000_000;

/** Parses the content of a `sidx` box that ends at byte `boxEnd` of the file. Throws {@link DecodeError} if it is invalid. */
export function parseSegmentIndex(bytes: Uint8Array, boxEnd: number): SegmentIndex {
  if (bytes.length < 24) throw new DecodeError("sidx", 0, "truncated head");
  const isLong = bytes[0] !== 0;
  const head = isLong ? 32 : 24;
  if (bytes.length < head) throw new DecodeError("sidx", 0, "truncated head");
  const trackId = readU32(bytes, 4);
  const timescale = readU32(bytes, 8);
  if (timescale === 0) throw new DecodeError("sidx", 8, "timescale is 0");
  let time = isLong ? readU64(bytes, 12) : readU32(bytes, 12);
  let at = boxEnd + (isLong ? readU64(bytes, 20) : readU32(bytes, 16));
  const count = Math.min(readU16(bytes, head - 2), Math.floor((bytes.length - head) / 12));
  const entries: FragmentEntry[] = [];
  let isNested = false;
  for (let i = 0; i < count; i++) {
    const reference = readU32(bytes, head + i * 12);
    isNested ||= reference >= 0x80000000;
    entries.push({ time, at, sample: 0 });
    at += reference & 0x7fffffff;
    time += readU32(bytes, head + i * 12 + 4);
  }
  return { trackId, timescale, entries, end: time, isNested };
}

/**
 * Parses the sync samples of each track, by track id, from the content of an `mfra` box (ISO 14496-12 8.8.9). Omits samples in a second
 * run of a fragment. Throws {@link DecodeError} above the limit of entries.
 */
export function parseFragmentAccess(bytes: Uint8Array): Map<number, FragmentEntry[]> {
  const tracks = new Map<number, FragmentEntry[]>();
  eachMp4Box(bytes, 0, bytes.length, (box) => {
    if (box.type !== "tfra" || box.end - box.start < 16) return;
    const isLong = bytes[box.start] === 1;
    const trackId = readU32(bytes, box.start + 4);
    const lengths = readU32(bytes, box.start + 8);
    const [trafBytes, runBytes, sampleBytes] = [4, 2, 0].map((shift) => ((lengths >> shift) & 3) + 1);
    const placeBytes = isLong ? 16 : 8;
    const entryBytes = placeBytes + trafBytes! + runBytes! + sampleBytes!;
    const count = Math.min(
      readU32(bytes, box.start + 12),
      Math.floor((box.end - box.start - 16) / entryBytes),
    );
    if (count > ENTRIES_LIMIT) throw new DecodeError("tfra", box.start, `${count} entries`);
    const entries: FragmentEntry[] = [];
    for (let i = 0; i < count; i++) {
      const from = box.start + 16 + i * entryBytes;
      const numbers = from + placeBytes + trafBytes!;
      if (readNumber(bytes, numbers, runBytes!) > 1) continue;
      const sample = Math.max(0, readNumber(bytes, numbers + runBytes!, sampleBytes!) - 1);
      entries.push(
        isLong
          ? { time: readU64(bytes, from), at: readU64(bytes, from + 8), sample }
          : { time: readU32(bytes, from), at: readU32(bytes, from + 4), sample },
      );
    }
    if (!tracks.has(trackId)) tracks.set(trackId, entries);
  });
  return tracks;
}

function readNumber(bytes: Uint8Array, at: number, length: number): number {
  let value = 0;
  for (let i = 0; i < length; i++) value = value * 256 + bytes[at + i]!;
  return value;
}
