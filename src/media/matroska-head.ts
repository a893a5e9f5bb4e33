import { latin1Text } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";
import { decodeUtf8 } from "../base/utf8.ts";
import { eachEbmlChild, ebmlFloat, ebmlUint } from "./ebml.ts";

/** Element ids we read (RFC 9559 5.1). */
export const MATROSKA = {
  ebml: 0x1a45dfa3, segment: 0x18538067, seekHead: 0x114d9b74, info: 0x1549a966, tracks: 0x1654ae6b,
  cues: 0x1c53bb6b, cluster: 0x1f43b675, void: 0xec, crc: 0xbf, tags: 0x1254c367, chapters: 0x1043a770,
  attachments: 0x1941a469,
} as const; // biome-ignore format: a table

/** More tracks than this is no film. */
const TRACKS_LIMIT = 128;
const SEEKS_LIMIT = 256;

/** One track as the header describes it. */
export interface MatroskaTrack {
  readonly number: number;
  readonly kind: "video" | "audio" | "subtitle" | "other";
  /** Such as `V_MPEG4/ISO/AVC` or `S_TEXT/UTF8`. */
  readonly codecId: string;
  readonly codecPrivate: Uint8Array | undefined;
  /** As written: ISO 639-2 or BCP 47; `eng` where absent (RFC 9559 5.1.4.1.19). */
  readonly language: string;
  readonly name: string | undefined;
  readonly isDefault: boolean;
  /** Bytes that were stripped from the front of every frame (RFC 9559 5.1.4.1.31.7); empty for none. */
  readonly strippedBytes: Uint8Array;
  /** How long a frame lasts, where it is told. */
  readonly frameSeconds: number | undefined;
  /** What a decoder needs before it gives sound: subtract it from all times (RFC 9559 5.1.4.1.26). */
  readonly delaySeconds: number;
  /** How frames are packed besides: `other` is encryption, or a compression nobody uses. */
  readonly packing: "none" | "zlib" | "other";
}

/** Where level-1 elements lie, by id, counted from the start of the segment's data. */
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

/** The length of one tick in seconds, and the length of the film where it is told. */
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
  if (scale < 1 || scale > 1e10) throw new DecodeError("Matroska", 0, `a timestamp scale of ${scale} ns`);
  const tickSeconds = scale / 1e9;
  const isTold = duration !== undefined && Number.isFinite(duration) && duration > 0;
  return { tickSeconds, durationSeconds: isTold ? duration! * tickSeconds : undefined };
}

/** The tracks of a `Tracks` element; throws {@link DecodeError}. */
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
  let [name, codecPrivate]: [string | undefined, Uint8Array | undefined] = [undefined, undefined];
  let [isDefault, frameNs, delayNs] = [true, 0, 0];
  let encoding: Encoding = { stripped: new Uint8Array(0), packing: "none" };
  eachEbmlChild(bytes, start, end, (id, from, to) => {
    if (id === 0xd7) number = ebmlUint(bytes, from, to);
    else if (id === 0x83) type = ebmlUint(bytes, from, to);
    else if (id === 0x86) codecId = text(bytes, from, to);
    else if (id === 0x63a2) codecPrivate = bytes.slice(from, to);
    else if (id === 0x22b59c) language = text(bytes, from, to);
    else if (id === 0x22b59d) bcp47 = text(bytes, from, to);
    else if (id === 0x536e) name = decodeUtf8(bytes.subarray(from, Math.min(to, from + 1024)));
    else if (id === 0x88) isDefault = ebmlUint(bytes, from, to) !== 0;
    else if (id === 0x23e383) frameNs = ebmlUint(bytes, from, to);
    else if (id === 0x56aa) delayNs = ebmlUint(bytes, from, to);
    else if (id === 0x6d80) encoding = parseEncodings(bytes, from, to);
  });
  const kind = type === 1 ? "video" : type === 2 ? "audio" : type === 17 ? "subtitle" : "other";
  return {
    number,
    kind,
    codecId,
    codecPrivate,
    language: bcp47 || language,
    name,
    isDefault,
    strippedBytes: encoding.stripped,
    // Longer than a minute is no frame, and no delay.
    frameSeconds: frameNs > 0 && frameNs < 60e9 ? frameNs / 1e9 : undefined,
    delaySeconds: delayNs < 60e9 ? delayNs / 1e9 : 0,
    packing: encoding.packing,
  };
}

interface Encoding {
  readonly stripped: Uint8Array;
  readonly packing: MatroskaTrack["packing"];
}

/** Header stripping is undone with its bytes, zlib by whoever reads the frames (RFC 9559 5.1.4.1.31). */
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
    if (kind === 0 && algorithm === 3 && count === 1) stripped = settings;
    else packing = kind === 0 && algorithm === 0 && count === 1 ? "zlib" : "other";
  });
  return { stripped, packing };
}

function text(bytes: Uint8Array, start: number, end: number): string {
  return latin1Text(bytes.subarray(start, Math.min(end, start + 256))).replace(/\0.*$/s, "");
}
