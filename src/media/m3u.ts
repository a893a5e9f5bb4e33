import { latin1Text } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";
import { percentDecode } from "../base/percent.ts";
import { decodeUtf8 } from "../base/utf8.ts";
import { MAX_M3U_ATTRIBUTES, MAX_M3U_VALUE_BYTES, readM3uAttributes } from "./m3u-attributes.ts";
import { lineText, type M3uLine, M3uLines } from "./m3u-line.ts";
import { Utf16Input } from "./utf16-input.ts";

/** An entry of a playlist. Its strings do not reference the playlist's bytes. */
export interface M3uEntry {
  /** The title of `#EXTINF`, else `tvg-name`, else empty. */
  readonly title: string;
  /** The unchecked URL; a `|name=value` suffix is moved to `options`. */
  readonly url: string;
  /** Undefined if missing, 0 or negative, which means live. */
  readonly durationSeconds: number | undefined;
  /** Names in lower case: `tvg-id`, `tvg-logo`, `group-title`, `catchup`, … */
  readonly attributes: ReadonlyMap<string, string>;
  /** `group-title`, else `#EXTGRP`. */
  readonly group: string | undefined;
  /** The options of `#EXTVLCOPT`, `#KODIPROP`, `#EXTHTTP` and `url|name=value`, in order. */
  readonly options: readonly (readonly [name: string, value: string])[];
  /** Line number of the URL, from 1. */
  readonly line: number;
}

/** The header of a playlist. */
interface M3uHeader {
  /** Attributes of `#EXTM3U`, names in lower case. */
  readonly attributes: ReadonlyMap<string, string>;
  /** URLs of electronic programme guides (`url-tvg`, `x-tvg-url`). */
  readonly guides: readonly string[];
}

/** Limit of entries, because each is stored as a record. */
const MAX_ENTRIES = 200_000;
/** In characters; longer titles are truncated. */
const MAX_TITLE_LENGTH = 1000;
/** Entries with a longer URL are skipped. Magnets with many trackers almost reach the limit. */
const MAX_URL_BYTES = 16 * 1024;
const MAX_OPTIONS = 32;
const MAX_GUIDES = 32;
const FORMAT = "playlist";
/** Tags that occur only in HLS manifests (RFC 8216 4.3.3, 4.3.4). Channel lists use other HLS tags too. */
const HLS_TAGS: ReadonlySet<string> = new Set([
  ..."#EXT-X-TARGETDURATION #EXT-X-STREAM-INF #EXT-X-MEDIA-SEQUENCE #EXT-X-I-FRAME-STREAM-INF".split(" "),
]);
/** How many bytes identify a file format. */
const M3U_HEAD_BYTES = 24;
const HASH = 0x23;
/** Shared by all entries without attributes or options, to save memory in long lists of links. */
const NO_ATTRIBUTES: ReadonlyMap<string, string> = new Map();
const NO_OPTIONS: M3uEntry["options"] = [];

/** The data of an entry before its URL line. */
interface Draft {
  title: string;
  durationSeconds: number | undefined;
  attributes: ReadonlyMap<string, string>;
  /** True if the entry has an `#EXTINF`. */
  isNamed: boolean;
  group: string | undefined;
  options: readonly (readonly [string, string])[];
}

/**
 * Reads an M3U playlist incrementally and tolerantly: with or without `#EXTM3U`, any line end, byte order marks, UTF-16, UTF-8, or
 * another character set in all lines that are not UTF-8. Entries may be returned later than their bytes were pushed, because the
 * character set must be detected first. All methods throw `DecodeError` as soon as the input is recognised as something else; the reader is unusable
 * afterwards. 64 KiB take about 2 ms, so push larger input in parts if the thread serves other requests.
 */
export class M3uReader {
  #kind: "list" | "hls" = "list";
  #skipped = 0;
  readonly #maxEntries: number;
  readonly #unicode = new Utf16Input();
  readonly #lines = new M3uLines();
  readonly #header = new Map<string, string>();
  readonly #guides = new Set<string>();
  /** The first non-blank bytes until their format is checked; undefined afterwards. */
  #head: number[] | undefined = [];
  #isList = false;
  #count = 0;
  #draft = newDraft();
  /** `#EXTGRP` between entries, which applies to all later entries. */
  #currentGroup: string | undefined;

  constructor(options: { readonly maxEntries?: number } = {}) {
    this.#maxEntries = options.maxEntries ?? MAX_ENTRIES;
  }

  /** `hls` for an HLS manifest, which has no entries. Final once the first entry or the end was read. */
  get kind(): "list" | "hls" {
    return this.#kind;
  }

  /** Number of skipped entries: without URL, or with a URL or line above the limit. */
  get skipped(): number {
    return this.#skipped + this.#lines.tooLong;
  }

  get header(): M3uHeader {
    return { attributes: this.#header, guides: [...this.#guides] };
  }

  /** Adds bytes and returns the completed entries. Throws `DecodeError`. */
  push(bytes: Uint8Array): M3uEntry[] {
    return this.#push(this.#unicode.push(bytes));
  }

  #push(text: Uint8Array): M3uEntry[] {
    this.#checkHead(text);
    const entries: M3uEntry[] = [];
    this.#lines.push(text, (line) => this.#read(line, entries));
    return entries;
  }

  /** Ends the input and returns the last entry. Throws `DecodeError` if the input was not a playlist. */
  end(): M3uEntry[] {
    const entries = this.#push(this.#unicode.push(new Uint8Array(0), true));
    if (this.#head) rejectOtherFormats(latin1Text(new Uint8Array(this.#head)));
    this.#lines.end((line) => this.#read(line, entries));
    if (this.#draft.isNamed) this.#skipped++;
    if (!this.#isList && this.#kind === "list")
      throw new DecodeError(FORMAT, 0, "expected a playlist, no entry and no #EXTM3U came");
    return entries;
  }

  #checkHead(bytes: Uint8Array): void {
    const head = this.#head;
    if (!head) return;
    for (const byte of bytes) {
      const isByteOrderMark = head.length === 3 && head[0] === 0xef && head[1] === 0xbb && head[2] === 0xbf;
      if (isByteOrderMark) head.length = 0;
      const isBlank = byte === 0x20 || (byte >= 0x09 && byte <= 0x0d);
      if (head.length > 0 || !isBlank) head.push(byte);
      const isLine = head.length > 0 && (byte === 0x0a || byte === 0);
      if (isLine || head.length === M3U_HEAD_BYTES) {
        rejectOtherFormats(latin1Text(new Uint8Array(head)));
        this.#head = undefined;
        return;
      }
    }
  }

  #read(line: M3uLine, entries: M3uEntry[]): void {
    if (this.#kind === "hls") return;
    if (line.bytes[line.start] === HASH) this.#readTag(line);
    else this.#readUrl(line, entries);
  }

  #readTag(line: M3uLine): void {
    const { bytes, start, end } = line;
    let at = start + 1;
    while (at < end && at - start < 32 && bytes[at] !== 0x3a && bytes[at]! > 0x20) at++;
    const tag = lineText(line, start, at).toUpperCase();
    const rest = bytes[at] === 0x3a ? at + 1 : at;
    switch (tag) {
      case "#EXTM3U":
      case "#EXTM3U8":
        this.#isList = true;
        this.#readHeader(line, rest);
        break;
      case "#EXTINF":
        this.#isList = true;
        this.#readInfo(line, rest);
        break;
      case "#EXTGRP":
        this.#readGroup(shortText(line, rest));
        break;
      case "#EXTVLCOPT":
      case "#KODIPROP":
        if (end - rest <= MAX_M3U_VALUE_BYTES) this.#addOption(lineText(line, rest, end));
        break;
      case "#EXTHTTP":
        if (end - rest <= MAX_M3U_VALUE_BYTES)
          for (const [name, value] of jsonHeaders(lineText(line, rest, end)))
            this.#addOption(`${name}=${value}`);
        break;
      case "#EXTIMG":
      case "#EXTALBUMARTURL":
        if (end - rest <= MAX_M3U_VALUE_BYTES)
          this.#addAttribute("tvg-logo", lineText(line, rest, end).trim());
        break;
      default:
        if (this.#count === 0 && HLS_TAGS.has(tag)) this.#kind = "hls";
    }
  }

  #readHeader(line: M3uLine, at: number): void {
    for (const [name, value] of readM3uAttributes(line, at).attributes) {
      if (!this.#header.has(name) && this.#header.size < MAX_M3U_ATTRIBUTES) this.#header.set(name, value);
      if (name !== "url-tvg" && name !== "x-tvg-url" && name !== "tvg-url") continue;
      for (const url of value.split(/[,;]\s*(?=https?:)|\s+/i))
        if (/^https?:\/\//i.test(url) && this.#guides.size < MAX_GUIDES) this.#guides.add(url);
    }
  }

  #readInfo(line: M3uLine, at: number): void {
    const draft = this.#draft;
    if (draft.isNamed) {
      this.#skipped++;
      this.#draft = newDraft();
    }
    const duration = readDuration(line, at);
    const { attributes, titleAt } = readM3uAttributes(line, duration.next);
    this.#draft.isNamed = true;
    this.#draft.durationSeconds = duration.seconds;
    this.#draft.title = shortText(line, titleAt);
    // A logo tag can precede `#EXTINF`.
    const before = this.#draft.attributes;
    this.#draft.attributes = before.size === 0 ? attributes : new Map([...before, ...attributes]);
  }

  #readGroup(group: string): void {
    if (this.#draft.isNamed) this.#draft.group = group;
    else this.#currentGroup = group || undefined;
  }

  #addOption(text: string): void {
    const equals = text.indexOf("=");
    const { options } = this.#draft;
    if (equals < 1 || options.length >= MAX_OPTIONS) return;
    this.#draft.options = [...options, [text.slice(0, equals).trim(), text.slice(equals + 1).trim()]];
  }

  #addAttribute(name: string, value: string): void {
    const before = this.#draft.attributes;
    if (value !== "" && !before.has(name) && before.size < MAX_M3U_ATTRIBUTES)
      this.#draft.attributes = new Map([...before, [name, value]]);
  }

  #readUrl(line: M3uLine, entries: M3uEntry[]): void {
    if (line.end - line.start > MAX_URL_BYTES) {
      this.#skipped++;
      this.#draft = newDraft();
      return;
    }
    const [url, ...pairs] = splitHeaders(lineText(line, line.start, line.end).trim());
    if (url === "") return; // Only control characters.
    if (!this.#isList && !looksLikeLink(url))
      throw new DecodeError(FORMAT, line.offset, "expected #EXTM3U or a link, other text came");
    this.#isList = true;
    if (++this.#count > this.#maxEntries)
      throw new DecodeError(FORMAT, line.offset, `the playlist has more than ${this.#maxEntries} entries`);
    for (const pair of pairs) this.#addOption(pair);
    const { title, durationSeconds, attributes, group, options } = this.#draft;
    this.#draft = newDraft();
    entries.push({
      title: title || truncate(attributes.get("tvg-name") ?? ""),
      url,
      durationSeconds,
      attributes,
      group: attributes.get("group-title") || group || this.#currentGroup,
      options,
      line: line.number,
    });
  }
}

function newDraft(): Draft {
  return {
    title: "",
    durationSeconds: undefined,
    attributes: NO_ATTRIBUTES,
    isNamed: false,
    group: undefined,
    options: NO_OPTIONS,
  };
}

/** Reads the duration after `#EXTINF:` in seconds, and the offset of its end. */
function readDuration(line: M3uLine, at: number): { seconds: number | undefined; next: number } {
  const text = lineText(line, at, Math.min(line.end, at + 24));
  const match = /^\s*([-+]?\d{1,12}(?:\.\d{0,9})?)/.exec(text);
  if (!match) return { seconds: undefined, next: at };
  const seconds = Number(match[1]);
  return { seconds: seconds > 0 ? seconds : undefined, next: at + match[0].length };
}

/** Reads the headers of `#EXTHTTP:{"name":"value"}`; empty if they are malformed. */
function jsonHeaders(text: string): [name: string, value: string][] {
  try {
    const headers: unknown = JSON.parse(text);
    if (typeof headers !== "object" || headers === null || Array.isArray(headers)) return [];
    return Object.entries(headers).filter(([, value]) => typeof value === "string");
  } catch {
    return [];
  }
}

/** Splits a URL from the percent-encoded headers that Kodi appends: `http://…|User-Agent=a&Referer=b`. */
function splitHeaders(text: string): [url: string, ...pairs: string[]] {
  const bar = text.indexOf("|");
  if (bar < 0 || !/^[a-z][a-z0-9]{1,5}:\/\//i.test(text) || !/^[\w-]+=/.test(text.slice(bar + 1, bar + 64)))
    return [text];
  const pairs = text.slice(bar + 1).split("&", MAX_OPTIONS);
  return [text.slice(0, bar).trimEnd(), ...pairs.map((pair) => decodeUtf8(percentDecode(pair)))];
}

/** The text from offset `at` to the end of the line, truncated to the title limit. */
function shortText(line: M3uLine, at: number): string {
  // Four bytes decode to at least one UTF-16 code unit.
  return truncate(lineText(line, at, Math.min(line.end, at + 4 * MAX_TITLE_LENGTH)).trim());
}

/** Truncates a text to the title limit without splitting a surrogate pair. */
function truncate(text: string): string {
  return text.length <= MAX_TITLE_LENGTH
    ? text
    : text.slice(0, MAX_TITLE_LENGTH).replace(/[\ud800-\udbff]$/, "");
}

/**
 * Throws `DecodeError` with the detected format if the first non-blank bytes show that the input is not a playlist. Common causes are
 * servers that answer with a login or error page.
 */
function rejectOtherFormats(head: string): void {
  const what = otherFormat(head);
  if (what !== undefined) throw new DecodeError(FORMAT, 0, `expected a playlist, ${what} came`);
}

function otherFormat(head: string): string | undefined {
  if (/^<(\?xml|tv\b|playlist\b|mpd\b|rss\b)/i.test(head)) return "XML";
  if (head.startsWith("<")) return "a web page";
  if (/^\[playlist\]/i.test(head)) return "a PLS playlist";
  if (/^[{[]/.test(head)) return "JSON";
  if (head.startsWith("\x1f\x8b")) return "compressed data";
  if (/^d\d{1,3}:/.test(head)) return "a transport file";
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern matches control characters
  if (/^(%PDF|PK\x03\x04|Rar!|7z\xbc|\x89PNG|\xff\xd8|GIF8|\x1aE\xdf\xa3|ID3|OggS)/.test(head))
    return "binary data";
  return undefined;
}

/** Returns true if a line of a playlist without `#EXTM3U` looks like a link and not like prose. */
function looksLikeLink(line: string): boolean {
  return /^(?:[a-z][a-z0-9+.-]{0,20}:\/\/\S|magnet:|acestream:|sluice:|[0-9a-f]{40}$)/i.test(line);
}
