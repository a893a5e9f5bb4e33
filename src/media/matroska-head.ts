import { concatBytes, latin1Text } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";
import { decodeUtf8 } from "../base/utf8.ts";
import { eachEbmlChild, ebmlFloat, ebmlUint } from "./ebml.ts";

/** Element ids (RFC 9559 5.1). */
export const MATROSKA = {
  segment: 0x18538067, seekHead: 0x114d9b74, info: 0x1549a966, tracks: 0x1654ae6b, cues: 0x1c53bb6b,
  cluster: 0x1f43b675, crc: 0xbf, attachments: 0x1941a469,
} as const; // biome-ignore format: a table

/** Limits for hostile files. */
const TRACKS_LIMIT = 128;
const SEEKS_LIMIT = 256;
const CODEC_PRIVATE_LIMIT_BYTES = 64 * 1024;

/** A TrackEntry (RFC 9559 5.1.4.1). */
export interface MatroskaTrack {
  readonly number: number;
  readonly kind: "video" | "audio" | "subtitle" | "other";
  /** Such as `V_MPEG4/ISO/AVC` or `S_TEXT/UTF8`. */
  readonly codecId: string;
  /** Unchanged: ISO 639-2 or BCP 47; `eng` if absent (RFC 9559 5.1.4.1.19). */
  readonly language: string;
  readonly name: string | undefined;
  readonly isDefault: boolean;
  /** FlagForced: subtitles with only essential text. */
  readonly isForced: boolean;
  /** Bytes to prepend to every frame (header stripping, RFC 9559 5.1.4.1.31.7); empty for none. */
  readonly strippedBytes: Uint8Array;
  /** DefaultDuration; undefined if not stated. */
  readonly frameSeconds: number | undefined;
  /** CodecDelay, to subtract from all times (RFC 9559 5.1.4.1.26). */
  readonly delaySeconds: number;
  /** Further encoding of the frames; `other` is encryption or an unsupported compression. */
  readonly packing: "none" | "zlib" | "other";
  /** CodecPrivate of a subtitle track. */
  readonly codecPrivate?: Uint8Array;
}

/** Parses a SeekHead element: positions of top-level elements by id, relative to the first child of the Segment. */
export function parseSeekHead(bytes: Uint8Array): Map<number, number> {
  const seeks = new Map<number, number>();
  eachEbmlChild(bytes, 0, bytes.length, (id, start, end) => {
    if (id !== 0x4dbb) return;
    let target = 0;
    let position: number | undefined;
    eachEbmlChild(bytes, start, end, (child, from, to) => {
      if (child === 0x53ab) target = ebmlUint(bytes, from, to);
      if (child === 0x53ac) position = ebmlUint(bytes, from, to);
    });
    if (position !== undefined && !seeks.has(target)) seeks.set(target, position);
    return seeks.size < SEEKS_LIMIT;
  });
  return seeks;
}

/** Parses an Info element: the duration of a tick, and the duration of the file if stated. Throws {@link DecodeError}. */
export function parseSegmentInfo(bytes: Uint8Array): {
  tickSeconds: number;
  durationSeconds: number | undefined;
} {
  let scale = 1_000_000;
  let duration: number | undefined;
  eachEbmlChild(bytes, 0, bytes.length, (id, start, end) => {
    if (id === 0x2ad7b1) scale = ebmlUint(bytes, start, end);
    if (id === 0x4489) duration = ebmlFloat(bytes, start, end);
  });
  if (scale < 1 || scale > 1e10)
    throw new DecodeError("Matroska", 0, `invalid timestamp scale of ${scale} ns`);
  const tickSeconds = scale / 1e9;
  const isStated = duration !== undefined && Number.isFinite(duration) && duration > 0;
  return { tickSeconds, durationSeconds: isStated ? duration! * tickSeconds : undefined };
}

/** Parses a Tracks element. Throws {@link DecodeError} if a value is invalid. */
export function parseMatroskaTracks(bytes: Uint8Array): MatroskaTrack[] {
  const tracks: MatroskaTrack[] = [];
  eachEbmlChild(bytes, 0, bytes.length, (id, start, end) => {
    if (id === 0xae) tracks.push(parseTrack(bytes, start, end));
    return tracks.length < TRACKS_LIMIT;
  });
  return tracks;
}

function parseTrack(bytes: Uint8Array, start: number, end: number): MatroskaTrack {
  let [number, type, codecId, language, bcp47] = [0, 0, "", "eng", ""];
  let name: string | undefined;
  let [isDefault, isForced, frameNs, delayNs] = [true, false, 0, 0];
  let codecPrivate = new Uint8Array(0);
  let encoding: Encoding = { stripped: new Uint8Array(0), packing: "none" };
  eachEbmlChild(bytes, start, end, (id, from, to) => {
    if (id === 0xd7) number = ebmlUint(bytes, from, to);
    else if (id === 0x83) type = ebmlUint(bytes, from, to);
    else if (id === 0x86) codecId = text(bytes, from, to);
    else if (id === 0x22b59c) language = text(bytes, from, to);
    else if (id === 0x22b59d) bcp47 = text(bytes, from, to);
    else if (id === 0x536e) name = decodeUtf8(bytes.subarray(from, Math.min(to, from + 1024)));
    else if (id === 0x88) isDefault = ebmlUint(bytes, from, to) !== 0;
    else if (id === 0x55aa) isForced = ebmlUint(bytes, from, to) !== 0;
    else if (id === 0x23e383) frameNs = ebmlUint(bytes, from, to);
    else if (id === 0x56aa) delayNs = ebmlUint(bytes, from, to);
    else if (id === 0x63a2) codecPrivate = bytes.slice(from, Math.min(to, from + CODEC_PRIVATE_LIMIT_BYTES));
    else if (id === 0x6d80) encoding = parseEncodings(bytes, from, to);
  });
  const kind = type === 1 ? "video" : type === 2 ? "audio" : type === 17 ? "subtitle" : "other";
  return {
    number,
    kind,
    codecId,
    language: bcp47 || language,
    name,
    isDefault,
    isForced,
    strippedBytes: encoding.stripped,
    // Values above a minute are invalid.
    frameSeconds: frameNs > 0 && frameNs < 60e9 ? frameNs / 1e9 : undefined,
    delaySeconds: delayNs < 60e9 ? delayNs / 1e9 : 0,
    packing: encoding.packing,
    ...(kind === "subtitle" && { codecPrivate }),
  };
}

interface Encoding {
  readonly stripped: Uint8Array;
  readonly packing: MatroskaTrack["packing"];
}

/** Parses ContentEncodings (RFC 9559 5.1.4.1.31) in their order of application. */
function parseEncodings(bytes: Uint8Array, start: number, end: number): Encoding {
  let stripped = new Uint8Array(0);
  let packing: Encoding["packing"] = "none";
  let count = 0;
  eachEbmlChild(bytes, start, end, (id, from, to) => {
    if (id !== 0x6240) return;
    let [scope, kind, algorithm] = [1, 0, 0];
    let settings = new Uint8Array(0);
    eachEbmlChild(bytes, from, to, (child, at, until) => {
      if (child === 0x5032) scope = ebmlUint(bytes, at, until);
      if (child === 0x5033) kind = ebmlUint(bytes, at, until);
      if (child !== 0x5034) return;
      eachEbmlChild(bytes, at, until, (inner, a, b) => {
        if (inner === 0x4254) algorithm = ebmlUint(bytes, a, b);
        if (inner === 0x4255) settings = bytes.slice(a, b);
      });
    });
    count++;
    if ((scope & 1) === 0) return;
    if (kind === 0 && algorithm === 3 && packing === "none") stripped = concatBytes([stripped, settings]);
    else packing = kind === 0 && algorithm === 0 && count === 1 ? "zlib" : "other";
  });
  return { stripped, packing };
}

function text(bytes: Uint8Array, start: number, end: number): string {
  return latin1Text(bytes.subarray(start, Math.min(end, start + 256))).replace(/\0.*$/s, "");
}

/** An index entry: the time of a key frame of a track, and the position of its cluster. */
export interface MatroskaCue {
  /** In ticks (`TimestampScale`). */
  readonly time: number;
  readonly track: number;
  /** Byte position relative to the first child of the Segment. */
  readonly clusterPosition: number;
}

/** Limit of cues: a week of key frames every 0.1 s. */
const CUES_LIMIT = 6_000_000;

/** Parses the content of a Cues element (RFC 9559 5.1.5), sorted by time. Throws {@link DecodeError} above the limit of cues. */
export function parseMatroskaCues(bytes: Uint8Array): MatroskaCue[] {
  const cues: MatroskaCue[] = [];
  eachEbmlChild(bytes, 0, bytes.length, (id, start, end) => {
    if (id === 0xbb) parseCuePoint(bytes, start, end, cues);
    if (cues.length > CUES_LIMIT)
      throw new DecodeError("Matroska cues", start, `more than ${CUES_LIMIT} cues`);
  });
  let isSorted = true;
  for (let i = 1; i < cues.length; i++) isSorted &&= cues[i - 1]!.time <= cues[i]!.time;
  return isSorted ? cues : cues.sort((a, b) => a.time - b.time);
}

function parseCuePoint(bytes: Uint8Array, start: number, end: number, cues: MatroskaCue[]): void {
  let time: number | undefined;
  const first = cues.length;
  eachEbmlChild(bytes, start, end, (id, from, to) => {
    if (id === 0xb3) time = ebmlUint(bytes, from, to);
    if (id !== 0xb7) return;
    let [track, clusterPosition] = [0, -1];
    eachEbmlChild(bytes, from, to, (child, at, until) => {
      if (child === 0xf7) track = ebmlUint(bytes, at, until);
      if (child === 0xf1) clusterPosition = ebmlUint(bytes, at, until);
    });
    if (clusterPosition >= 0) cues.push({ time: time ?? -1, track, clusterPosition });
  });
  // CueTime can follow the positions; a point without CueTime is dropped.
  if (time === undefined) cues.length = first;
  else for (let i = first; i < cues.length; i++) if (cues[i]!.time < 0) cues[i] = { ...cues[i]!, time };
}
