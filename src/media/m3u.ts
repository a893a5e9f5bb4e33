import { latin1Text } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";
import { MAX_M3U_ATTRIBUTES, MAX_M3U_VALUE_BYTES, readM3uAttributes } from "./m3u-attributes.ts";
import { looksLikeLink, M3U_HEAD_BYTES, refuseForeign } from "./m3u-foreign.ts";
import { lineText, type M3uLine, M3uLines } from "./m3u-line.ts";

/** One entry of a playlist. All its texts are its own: none keeps the list's bytes alive. */
export interface M3uEntry {
  /** Behind the comma of `#EXTINF`, else `tvg-name`; empty where there is neither. */
  readonly title: string;
  /** As it stands in the list, whatever it is; `|name=value` behind it has become options. */
  readonly url: string;
  /** Undefined where the list says none, 0 or a negative one, as it does for what is live. */
  readonly durationSeconds: number | undefined;
  /** Names in lower case: `tvg-id`, `tvg-logo`, `group-title`, `catchup` … */
  readonly attributes: ReadonlyMap<string, string>;
  /** `group-title`, else `#EXTGRP`. */
  readonly group: string | undefined;
  /** What `#EXTVLCOPT`, `#KODIPROP` and `url|name=value` say, in order. */
  readonly options: readonly (readonly [name: string, value: string])[];
  /** The line of the URL, from 1 on. */
  readonly line: number;
}

/** What stands in front of the entries. */
export interface M3uHeader {
  /** Of `#EXTM3U`; names in lower case. */
  readonly attributes: ReadonlyMap<string, string>;
  /** URLs of programme guides (`url-tvg`, `x-tvg-url`). */
  readonly guides: readonly string[];
}

/** More entries are refused: nobody can look through more, and each costs a record. */
const MAX_ENTRIES = 200_000;
/** Characters; longer titles are cut. */
const MAX_TITLE_LENGTH = 1000;
/** Bytes; an entry with a longer one is left out. Magnets with many trackers come close. */
const MAX_URL_BYTES = 16 * 1024;
const MAX_OPTIONS = 32;
const MAX_GUIDES = 32;
const FORMAT = "playlist";
/** What only HLS manifests say (RFC 8216 4.3.3, 4.3.4). Lists of channels borrow other tags of HLS. */
const HLS_TAGS: ReadonlySet<string> = new Set([
  ..."#EXT-X-TARGETDURATION #EXT-X-STREAM-INF #EXT-X-MEDIA-SEQUENCE #EXT-X-I-FRAME-STREAM-INF".split(" "),
]);
const HASH = 0x23;
/** Shared by all entries that have none: lists of bare links are long. Never written to. */
const NO_ATTRIBUTES: ReadonlyMap<string, string> = new Map();
const NO_OPTIONS: M3uEntry["options"] = [];

/** An entry whose URL has not come yet. */
interface Draft {
  title: string;
  durationSeconds: number | undefined;
  attributes: ReadonlyMap<string, string>;
  /** An `#EXTINF` has begun it. */
  isNamed: boolean;
  group: string | undefined;
  options: readonly (readonly [string, string])[];
}

/**
 * Reads an M3U playlist while it arrives, as real lists are: with or without `#EXTM3U`, any line end, byte order
 * marks, UTF-8 or (decided for each line) Windows-1252. Everything throws `DecodeError` where no playlist came, as early as that can
 * be told; the reader is of no use afterwards. Takes about 2 ms for 64 KiB: give it no more at once where others wait.
 */
export class M3uReader {
  #kind: "list" | "hls" = "list";
  #skipped = 0;
  readonly #maxEntries: number;
  readonly #lines = new M3uLines();
  readonly #header = new Map<string, string>();
  readonly #guides = new Set<string>();
  /** The first bytes that are not blank, until they have been judged. */
  #head: number[] | undefined = [];
  #isList = false;
  #count = 0;
  #draft = newDraft();
  /** `#EXTGRP` between entries is for all that follow. */
  #standingGroup: string | undefined;

  constructor(options: { readonly maxEntries?: number } = {}) {
    this.#maxEntries = options.maxEntries ?? MAX_ENTRIES;
  }

  /** `hls`: the manifest of one stream, which has no entries. Certain when the first entry is there, or the end. */
  get kind(): "list" | "hls" {
    return this.#kind;
  }

  /** Entries that were passed over: no URL, or one or a line that is too long. */
  get skipped(): number {
    return this.#skipped + this.#lines.tooLong;
  }

  get header(): M3uHeader {
    return { attributes: this.#header, guides: [...this.#guides] };
  }

  /** Takes the next bytes; returns the entries that are whole now. Throws `DecodeError`. */
  push(bytes: Uint8Array): M3uEntry[] {
    this.#judgeHead(bytes);
    const entries: M3uEntry[] = [];
    this.#lines.push(bytes, (line) => this.#read(line, entries));
    return entries;
  }

  /** Says that no more bytes come; returns the last entry. Throws `DecodeError` where it was no playlist. */
  end(): M3uEntry[] {
    const entries: M3uEntry[] = [];
    if (this.#head) refuseForeign(latin1Text(new Uint8Array(this.#head)));
    this.#lines.end((line) => this.#read(line, entries));
    if (this.#draft.isNamed) this.#skipped++;
    if (!this.#isList && this.#kind === "list")
      throw new DecodeError(FORMAT, 0, "expected a playlist, nothing of one came");
    return entries;
  }

  #judgeHead(bytes: Uint8Array): void {
    const head = this.#head;
    if (!head) return;
    for (const byte of bytes) {
      const isMark = head.length === 3 && head[0] === 0xef && head[1] === 0xbb && head[2] === 0xbf;
      if (isMark) head.length = 0;
      const isBlank = byte === 0x20 || (byte >= 0x09 && byte <= 0x0d);
      if (head.length > 0 || !isBlank) head.push(byte);
      const isLine = head.length > 0 && (byte === 0x0a || byte === 0);
      if (isLine || head.length === M3U_HEAD_BYTES) {
        refuseForeign(latin1Text(new Uint8Array(head)));
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
    const length = readLength(line, at);
    const { attributes, titleAt } = readM3uAttributes(line, length.next);
    this.#draft.isNamed = true;
    this.#draft.durationSeconds = length.seconds;
    this.#draft.title = shortText(line, titleAt);
    // A logo may have come before.
    const before = this.#draft.attributes;
    this.#draft.attributes = before.size === 0 ? attributes : new Map([...before, ...attributes]);
  }

  #readGroup(group: string): void {
    if (this.#draft.isNamed) this.#draft.group = group;
    else this.#standingGroup = group || undefined;
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
    const [url, ...pairs] = partHeaders(lineText(line, line.start, line.end).trim());
    if (url === "") return; // Nothing but control characters.
    if (!this.#isList && !looksLikeLink(url))
      throw new DecodeError(FORMAT, line.offset, "expected #EXTM3U or a link, other text came");
    this.#isList = true;
    if (++this.#count > this.#maxEntries)
      throw new DecodeError(FORMAT, line.offset, `more than ${this.#maxEntries} entries`);
    for (const pair of pairs) this.#addOption(pair);
    const { title, durationSeconds, attributes, group, options } = this.#draft;
    this.#draft = newDraft();
    entries.push({
      title: title || cut(attributes.get("tvg-name") ?? ""),
      url,
      durationSeconds,
      attributes,
      group: attributes.get("group-title") || group || this.#standingGroup,
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

/** The length behind `#EXTINF:`, in seconds, and where it ends. */
function readLength(line: M3uLine, at: number): { seconds: number | undefined; next: number } {
  const text = lineText(line, at, Math.min(line.end, at + 24));
  const match = /^\s*([-+]?\d{1,12}(?:\.\d{0,9})?)/.exec(text);
  if (!match) return { seconds: undefined, next: at };
  const seconds = Number(match[1]);
  return { seconds: seconds > 0 ? seconds : undefined, next: at + match[0].length };
}

/** A URL and the headers that Kodi writes behind it: `http://…|User-Agent=a&Referer=b`. */
function partHeaders(text: string): [url: string, ...pairs: string[]] {
  const bar = text.indexOf("|");
  if (bar < 0 || !/^[a-z][a-z0-9]{1,5}:\/\//i.test(text) || !/^[\w-]+=/.test(text.slice(bar + 1, bar + 64)))
    return [text];
  return [text.slice(0, bar).trimEnd(), ...text.slice(bar + 1).split("&", MAX_OPTIONS)];
}

/** The text from `at` to the line's end, as long as a title may be. */
function shortText(line: M3uLine, at: number): string {
  // Four bytes make at least one character of UTF-16.
  return cut(lineText(line, at, Math.min(line.end, at + 4 * MAX_TITLE_LENGTH)).trim());
}

/** The head of a text, no character cut in two. */
function cut(text: string): string {
  return text.length <= MAX_TITLE_LENGTH
    ? text
    : text.slice(0, MAX_TITLE_LENGTH).replace(/[\ud800-\udbff]$/, "");
}
