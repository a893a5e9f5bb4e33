import { fromHex } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";
import type { ByteRange } from "../base/range.ts";
import { hlsByteRange, hlsNumber, hlsTimeMs, readHlsAttributes } from "./hls-attributes.ts";

/** A media playlist (RFC 8216 4.3.3). */
export interface HlsMedia {
  readonly kind: "media";
  readonly version: number;
  /** `#EXT-X-TARGETDURATION`; if the manifest has none, the rounded duration of its longest segment. */
  readonly targetSeconds: number;
  /** Media sequence number of the first segment. */
  readonly firstNumber: number;
  readonly segments: readonly HlsSegment[];
  /** True if no segments will be added (`#EXT-X-ENDLIST`). */
  readonly isEnded: boolean;
  readonly type: "vod" | "event" | undefined;
  /** Preferred start of playback (`#EXT-X-START`), from the start, or from the end if negative. */
  readonly startSeconds: number | undefined;
}

/** Returns true if the playlist is live: the server will add segments. */
export function isLiveHls({ isEnded, type }: HlsMedia): boolean {
  return !isEnded && type !== "vod";
}

/** A media segment (RFC 8216 4.3.2). */
export interface HlsSegment {
  /** Unresolved; relative to the manifest's URL. */
  readonly uri: string;
  /** Media sequence number, which identifies the segment across reloads. */
  readonly number: number;
  readonly durationSeconds: number;
  readonly title: string;
  /** Byte range of the resource; undefined for all of it. */
  readonly range: ByteRange | undefined;
  readonly key: HlsKey | undefined;
  /** The initialisation segment of fragmented MP4. */
  readonly map: HlsMap | undefined;
  /** True after `#EXT-X-DISCONTINUITY`. */
  readonly isDiscontinuous: boolean;
  /** Discontinuity sequence number; segments with the same number have a common clock. */
  readonly discontinuity: number;
  /** `#EXT-X-PROGRAM-DATE-TIME` in UNIX milliseconds; undefined if the segment has none. */
  readonly programTimeMs: number | undefined;
  /** True if it is missing and must not be requested (`#EXT-X-GAP`). */
  readonly isGap: boolean;
}

/** Encryption of segments (RFC 8216 4.3.2.4). */
export interface HlsKey {
  /** `AES-128`, or an unsupported method. */
  readonly method: string;
  readonly uri: string;
  /** 16 bytes; if undefined, the segment's number is the IV. */
  readonly iv: Uint8Array | undefined;
  /** `identity` if the URI returns the key itself. */
  readonly format: string;
}

/** Location of an initialisation segment (RFC 8216 4.3.2.5). */
interface HlsMap {
  readonly uri: string;
  readonly range: ByteRange | undefined;
}

/** Limit of segments: two days of two-second segments. */
const MAX_SEGMENTS = 100_000;
const MAX_KEY_FORMATS = 8;
/** Limit of a segment duration: a day, because some servers send a whole film as one segment. */
const MAX_SEGMENT_SECONDS = 24 * 3600;
const MAX_TITLE_LENGTH = 1000;
const FORMAT = "HLS manifest";

/** Builds an {@link HlsMedia} from the lines of a manifest. */
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
  /** End of the last byte range, which is the default offset of the next range of the same resource. */
  #lastRange: { uri: string; end: number } | undefined;

  /** True if the next URI belongs to a segment. */
  get awaitsUri(): boolean {
    return this.#next.durationSeconds !== undefined;
  }

  get isEmpty(): boolean {
    return this.#segments.length === 0 && this.#targetSeconds === undefined && !this.awaitsUri;
  }

  /** Processes a tag; ignores tags of master playlists. Throws `DecodeError`. */
  tag(name: string, value: string, offset: number): void {
    switch (name) {
      case "EXTINF":
        this.#readInfo(value, offset);
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

  /** Adds the segment described by the last tags. Throws `DecodeError`. */
  uri(uri: string, offset: number): void {
    if (this.#segments.length === MAX_SEGMENTS)
      throw new DecodeError(FORMAT, offset, `more than ${MAX_SEGMENTS} segments`);
    const { durationSeconds, title = "", isDiscontinuous = false, isGap = false, programTimeMs } = this.#next;
    const range = this.#readRange(uri, offset);
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

  /** Processes the tags that apply to the whole manifest. */
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
        // After the first segment the tag would change the number of that segment.
        if (this.#segments.length === 0) this.#number = Math.floor(number ?? 0);
        break;
      case "EXT-X-DISCONTINUITY-SEQUENCE":
        if (this.#segments.length === 0) this.#discontinuity = Math.floor(number ?? 0);
        break;
      case "EXT-X-SKIP":
        // A delta update, which the engine never requests; skipped segments count nevertheless.
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

  #readInfo(value: string, offset: number): void {
    const comma = value.indexOf(",");
    const seconds = hlsNumber(comma < 0 ? value : value.slice(0, comma));
    if (seconds === undefined || seconds > MAX_SEGMENT_SECONDS)
      throw new DecodeError(FORMAT, offset, `expected a segment duration, got "${value.slice(0, 20)}"`);
    this.#next.durationSeconds = seconds;
    if (comma >= 0) this.#next.title = value.slice(comma + 1, comma + 1 + MAX_TITLE_LENGTH).trim();
  }

  #readRange(uri: string, offset: number): ByteRange | undefined {
    if (this.#next.range === undefined) {
      this.#lastRange = undefined;
      return undefined;
    }
    const start = this.#lastRange?.uri === uri ? this.#lastRange.end : undefined;
    const range = hlsByteRange(this.#next.range, start);
    if (!range)
      throw new DecodeError(FORMAT, offset, `expected a byte range, got "${this.#next.range.slice(0, 40)}"`);
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
        throw new DecodeError(FORMAT, offset, "EXT-X-KEY has no METHOD or no URI");
      const format = attributes.get("KEYFORMAT") ?? "identity";
      const ivText = attributes.get("IV");
      const iv = ivText === undefined ? undefined : parseIv(ivText);
      if (ivText !== undefined && !iv)
        throw new DecodeError(FORMAT, offset, "the IV of EXT-X-KEY is not hexadecimal");
      if (this.#keys.size < MAX_KEY_FORMATS || this.#keys.has(format))
        this.#keys.set(format, { method, uri, iv, format });
    }
    // The same key can be listed in several formats for different players; this engine uses `identity`.
    this.#key = this.#keys.get("identity") ?? this.#keys.values().next().value;
  }

  #readMap(value: string, offset: number): void {
    const attributes = readHlsAttributes(value);
    const uri = attributes.get("URI");
    const rangeText = attributes.get("BYTERANGE");
    const range = rangeText === undefined ? undefined : hlsByteRange(rangeText, 0);
    if (uri === undefined || (rangeText !== undefined && !range))
      throw new DecodeError(FORMAT, offset, "EXT-X-MAP has no URI, or an invalid BYTERANGE");
    this.#map = { uri, range };
  }
}

/** The tags since the last URI, which apply to the next segment. */
interface NextSegment {
  durationSeconds?: number;
  title?: string;
  range?: string;
  isDiscontinuous?: boolean;
  isGap?: boolean;
  programTimeMs?: number | undefined;
}

/** Reads `0x…`, up to 128 bits, as 16 bytes. Some servers omit the `0x`, which is unambiguous only for 32 digits. */
function parseIv(text: string): Uint8Array | undefined {
  const [, prefixed, digits = prefixed] = /^(?:0x([0-9a-f]{1,32})|([0-9a-f]{32}))$/i.exec(text) ?? [];
  return digits === undefined ? undefined : fromHex(digits.padStart(32, "0"));
}

function signedSeconds(text: string | undefined): number | undefined {
  const seconds = hlsNumber(text?.replace(/^-/, ""));
  return seconds === undefined ? undefined : text!.startsWith("-") ? -seconds : seconds;
}
