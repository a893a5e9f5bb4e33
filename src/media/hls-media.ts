import { fromHex } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";
import type { ByteRange } from "../base/range.ts";
import { hlsByteRange, hlsNumber, hlsTimeMs, readHlsAttributes } from "./hls-attributes.ts";

/** The segments of one stream (RFC 8216 4.3.3). */
export interface HlsMedia {
  readonly kind: "media";
  readonly version: number;
  /** No segment is longer, rounded; where a manifest does not say, that of its longest segment. */
  readonly targetSeconds: number;
  /** The number of the first segment of `segments`. */
  readonly firstNumber: number;
  readonly segments: readonly HlsSegment[];
  /** Nothing will be added (`#EXT-X-ENDLIST`). */
  readonly isEnded: boolean;
  readonly type: "vod" | "event" | undefined;
  /** Where playing should begin: from the start, or from the end where it is negative. */
  readonly startSeconds: number | undefined;
}

/** Whether more will come: it is being made while it is watched. */
export function isLiveHls({ isEnded, type }: HlsMedia): boolean {
  return !isEnded && type !== "vod";
}

/** One segment. */
export interface HlsSegment {
  /** As it stands there; relative to the manifest's own URL. */
  readonly uri: string;
  /** Its media sequence number: the same when the manifest is read again. */
  readonly number: number;
  readonly durationSeconds: number;
  readonly title: string;
  /** The part of the resource; undefined for all of it. */
  readonly range: ByteRange | undefined;
  readonly key: HlsKey | undefined;
  /** The initialisation of fragmented MP4. */
  readonly map: HlsMap | undefined;
  /** The clocks jump before it. */
  readonly isDiscontinuous: boolean;
  /** Its discontinuity sequence number: segments of the same share their clocks. */
  readonly discontinuity: number;
  /** When it was made, in milliseconds since 1970, where it says so itself. */
  readonly programTimeMs: number | undefined;
  /** It is missing, and must not be asked for. */
  readonly isGap: boolean;
}

/** How segments are encrypted (RFC 8216 4.3.2.4). */
export interface HlsKey {
  /** `AES-128`, or one that we do not know. */
  readonly method: string;
  readonly uri: string;
  /** 16 bytes; where none is said, it is the segment's number. */
  readonly iv: Uint8Array | undefined;
  /** `identity`: the URI's answer is the key itself. */
  readonly format: string;
}

/** Where an initialisation segment is. */
export interface HlsMap {
  readonly uri: string;
  readonly range: ByteRange | undefined;
}

/** More than two days of two-second segments. */
const MAX_SEGMENTS = 100_000;
const MAX_KEY_FORMATS = 8;
/** A day: whole films as one segment are seen, longer ones are not. */
const MAX_SEGMENT_SECONDS = 24 * 3600;
const MAX_TITLE_LENGTH = 1000;
const FORMAT = "HLS manifest";

/** Gathers what the lines of a media manifest say. */
export class HlsMediaBuilder {
  readonly #segments: HlsSegment[] = [];
  readonly #keys = new Map<string, HlsKey>();
  #key: HlsKey | undefined;
  #map: HlsMap | undefined;
  #version = 1;
  #targetSeconds: number | undefined;
  #number = 0;
  #discontinuity = 0;
  #isEnded = false;
  #type: "vod" | "event" | undefined;
  #startSeconds: number | undefined;
  #next: NextSegment = {};
  /** The next byte of each resource of which parts were named: only that of the last one. */
  #lastRange: { uri: string; end: number } | undefined;

  /** Whether the next URI is that of a segment. */
  get awaitsUri(): boolean {
    return this.#next.durationSeconds !== undefined;
  }

  get isEmpty(): boolean {
    return this.#segments.length === 0 && this.#targetSeconds === undefined && !this.awaitsUri;
  }

  /** Takes a tag, if it is one of its own. Throws `DecodeError`. */
  tag(name: string, value: string, offset: number): void {
    switch (name) {
      case "EXTINF":
        this.#info(value, offset);
        break;
      case "EXT-X-BYTERANGE":
        this.#next.range = value;
        break;
      case "EXT-X-DISCONTINUITY":
        this.#next.isDiscontinuous = true;
        this.#discontinuity++;
        break;
      case "EXT-X-GAP":
        this.#next.isGap = true;
        break;
      case "EXT-X-PROGRAM-DATE-TIME":
        this.#next.programTimeMs = hlsTimeMs(value);
        break;
      case "EXT-X-KEY":
        this.#readKey(value, offset);
        break;
      case "EXT-X-MAP":
        this.#readMap(value, offset);
        break;
      default:
        this.#wholeTag(name, value);
    }
  }

  /** Takes the URI of the segment that the last tags were about. Throws `DecodeError`. */
  uri(uri: string, offset: number): void {
    if (this.#segments.length === MAX_SEGMENTS)
      throw new DecodeError(FORMAT, offset, `more than ${MAX_SEGMENTS} segments`);
    const { durationSeconds, title = "", isDiscontinuous = false, isGap = false, programTimeMs } = this.#next;
    const range = this.#rangeOf(uri, offset);
    this.#segments.push({
      uri,
      number: this.#number + this.#segments.length,
      durationSeconds: durationSeconds!,
      title,
      range,
      key: this.#key,
      map: this.#map,
      isDiscontinuous,
      discontinuity: this.#discontinuity,
      programTimeMs,
      isGap,
    });
    this.#next = {};
  }

  finish(): HlsMedia {
    let longest = 1;
    for (const { durationSeconds } of this.#segments)
      longest = Math.max(longest, Math.round(durationSeconds));
    return {
      kind: "media",
      version: this.#version,
      targetSeconds: this.#targetSeconds || longest,
      firstNumber: this.#number,
      segments: this.#segments,
      isEnded: this.#isEnded,
      type: this.#type,
      startSeconds: this.#startSeconds,
    };
  }

  /** Tags about the whole manifest. */
  #wholeTag(name: string, value: string): void {
    const number = hlsNumber(value);
    switch (name) {
      case "EXT-X-VERSION":
        this.#version = number ?? 1;
        break;
      case "EXT-X-TARGETDURATION":
        this.#targetSeconds = Math.min(MAX_SEGMENT_SECONDS, Math.ceil(number ?? 0));
        break;
      case "EXT-X-MEDIA-SEQUENCE":
        // Behind the first segment they would give it another number.
        if (this.#segments.length === 0) this.#number = Math.floor(number ?? 0);
        break;
      case "EXT-X-DISCONTINUITY-SEQUENCE":
        if (this.#segments.length === 0) this.#discontinuity = Math.floor(number ?? 0);
        break;
      case "EXT-X-SKIP":
        // A shortened manifest, which we never ask for: what is left out counts all the same.
        if (this.#segments.length === 0)
          this.#number += hlsNumber(readHlsAttributes(value).get("SKIPPED-SEGMENTS")) ?? 0;
        break;
      case "EXT-X-ENDLIST":
        this.#isEnded = true;
        break;
      case "EXT-X-PLAYLIST-TYPE":
        this.#type = /^vod\b/i.test(value) ? "vod" : /^event\b/i.test(value) ? "event" : undefined;
        break;
      case "EXT-X-START":
        this.#startSeconds = signedSeconds(readHlsAttributes(value).get("TIME-OFFSET"));
    }
  }

  #info(value: string, offset: number): void {
    const comma = value.indexOf(",");
    const seconds = hlsNumber(comma < 0 ? value : value.slice(0, comma));
    if (seconds === undefined || seconds > MAX_SEGMENT_SECONDS)
      throw new DecodeError(FORMAT, offset, `expected the length of a segment, not "${value.slice(0, 20)}"`);
    this.#next.durationSeconds = seconds;
    if (comma >= 0) this.#next.title = value.slice(comma + 1, comma + 1 + MAX_TITLE_LENGTH).trim();
  }

  #rangeOf(uri: string, offset: number): ByteRange | undefined {
    if (this.#next.range === undefined) {
      this.#lastRange = undefined;
      return undefined;
    }
    const start = this.#lastRange?.uri === uri ? this.#lastRange.end : undefined;
    const range = hlsByteRange(this.#next.range, start);
    if (!range)
      throw new DecodeError(FORMAT, offset, `expected a byte range, not "${this.#next.range.slice(0, 40)}"`);
    this.#lastRange = { uri, end: range.end };
    return range;
  }

  #readKey(value: string, offset: number): void {
    const attributes = readHlsAttributes(value);
    const method = attributes.get("METHOD") ?? "";
    if (method === "NONE") this.#keys.clear();
    else {
      const uri = attributes.get("URI");
      if (method === "" || uri === undefined)
        throw new DecodeError(FORMAT, offset, "a key without method or URI");
      const format = attributes.get("KEYFORMAT") ?? "identity";
      const ivText = attributes.get("IV");
      const iv = ivText === undefined ? undefined : ivOf(ivText);
      if (ivText !== undefined && !iv)
        throw new DecodeError(FORMAT, offset, "a key whose IV is not hexadecimal");
      if (this.#keys.size < MAX_KEY_FORMATS || this.#keys.has(format))
        this.#keys.set(format, { method, uri, iv, format });
    }
    // The same key in several forms, for players of several makers: ours is the plain one.
    this.#key = this.#keys.get("identity") ?? this.#keys.values().next().value;
  }

  #readMap(value: string, offset: number): void {
    const attributes = readHlsAttributes(value);
    const uri = attributes.get("URI");
    const rangeText = attributes.get("BYTERANGE");
    const range = rangeText === undefined ? undefined : hlsByteRange(rangeText, 0);
    if (uri === undefined || (rangeText !== undefined && !range))
      throw new DecodeError(FORMAT, offset, "an initialisation segment without URI, or with a broken range");
    this.#map = { uri, range };
  }
}

/** What the tags before a URI say about its segment. */
interface NextSegment {
  durationSeconds?: number;
  title?: string;
  range?: string;
  isDiscontinuous?: boolean;
  isGap?: boolean;
  programTimeMs?: number | undefined;
}

/** `0x…`, up to 128 bits. */
function ivOf(text: string): Uint8Array | undefined {
  const digits = /^0x([0-9a-f]{1,32})$/i.exec(text)?.[1];
  return digits === undefined ? undefined : fromHex(digits.padStart(32, "0"));
}

function signedSeconds(text: string | undefined): number | undefined {
  const seconds = hlsNumber(text?.replace(/^-/, ""));
  return seconds === undefined ? undefined : text!.startsWith("-") ? -seconds : seconds;
}
