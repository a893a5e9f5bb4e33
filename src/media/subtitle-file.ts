import { decodeUtf8, isUtf8 } from "../base/utf8.ts";
import { charsetDecoder, charsetSample, detectCharset } from "./charset.ts";
import { Utf16Input } from "./utf16-input.ts";
import { assTextToCueText, escapeVttText, isTopText, subripToCueText, type TextCue } from "./webvtt.ts";

/** The formats of subtitle files that are text. */
export type SubtitleFormat = "subrip" | "ass" | "webvtt";

/** Formats by the end of a file name. */
const FORMATS: Readonly<Record<string, SubtitleFormat>> = {
  srt: "subrip",
  ass: "ass",
  ssa: "ass",
  vtt: "webvtt",
};

/** Limits for hostile files: lines, cues, and characters of one cue. */
const LINES_LIMIT = 500_000;
const CUES_LIMIT = 50_000;
const CUE_CHARACTERS_LIMIT = 16 * 1024;
/** SubStation Alpha defines 10 fields of an event. */
const FIELDS_LIMIT = 64;

/** `00:01:02,345 --> 00:01:04,000`; hours can be missing, and the separator of milliseconds is a comma or a point. */
const TIMING =
  /^\s*(?:(\d{1,4}):)?(\d{1,2}):(\d{1,2})[.,](\d{1,3})\s*-->\s*(?:(\d{1,4}):)?(\d{1,2}):(\d{1,2})[.,](\d{1,3})(?:\s|$)/;
/** `0:01:02.34` of SubStation Alpha. */
const ASS_TIME = /^\s*(\d{1,4}):(\d{1,2}):(\d{1,2})[.:](\d{1,3})\s*$/;
/** The fields of an event if the file does not list them. */
const ASS_FIELDS = [
  "layer",
  "start",
  "end",
  "style",
  "name",
  "marginl",
  "marginr",
  "marginv",
  "effect",
  "text",
];

/** Returns the format of a file by its name; undefined if it is not a subtitle file. */
export function subtitleFormat(name: string): SubtitleFormat | undefined {
  return FORMATS[/\.(srt|ass|ssa|vtt)$/i.exec(name)?.[1]?.toLowerCase() ?? ""];
}

/** Decodes the text of a subtitle file: UTF-8, UTF-16, or the character set that its letters suggest. */
export function decodeSubtitles(bytes: Uint8Array): string {
  const text = new Utf16Input().push(bytes, true);
  const decode = isUtf8(text) ? decodeUtf8 : charsetDecoder(detectCharset(charsetSample(text)));
  return decode(text).replace(/^\ufeff/, "");
}

/**
 * Reads a subtitle file in steps of some milliseconds, because 10 MB of hostile markup take a second. Invalid parts are skipped.
 * Returns the cues in order of their times.
 */
export function* readSubtitles(bytes: Uint8Array, format: SubtitleFormat): Generator<void, TextCue[], void> {
  const text = decodeSubtitles(bytes);
  yield;
  const lines = text.split(/\r\n|\r|\n/, LINES_LIMIT);
  yield;
  const cues = yield* format === "ass" ? assCues(lines) : timedCues(lines, format);
  return cues.sort((a, b) => a.startSeconds - b.startSeconds);
}

/** Parses SubRip or WebVTT: the lines from one timing to the next. */
function* timedCues(lines: readonly string[], format: "subrip" | "webvtt"): Generator<void, TextCue[], void> {
  const cues: TextCue[] = [];
  let at = lines.findIndex((line) => TIMING.test(line));
  while (at >= 0 && at < lines.length && cues.length < CUES_LIMIT) {
    const timing = TIMING.exec(lines[at]!)!;
    yield;
    let end = at + 1;
    while (end < lines.length && !TIMING.test(lines[end]!)) end++;
    const own = lines.slice(at + 1, end);
    const text = ownText(own, format, end < lines.length);
    const isTop = format === "subrip" && isTopText(limited(own));
    const [startSeconds, endSeconds] = [secondsOf(timing, 1), secondsOf(timing, 5)];
    if (text !== "" && endSeconds > startSeconds)
      cues.push({ startSeconds, endSeconds, text, ...(isTop && { isTop }) });
    at = end;
  }
  return cues;
}

function ownText(lines: readonly string[], format: "subrip" | "webvtt", hasNext: boolean): string {
  if (format === "webvtt") {
    const end = lines.findIndex((line) => line.trim() === "");
    return escapeVttText(limited(lines.slice(0, end < 0 ? undefined : end)));
  }
  // The number of the next cue is the last line before its timing. A cue may contain empty lines.
  const isNumber = hasNext && /^\s*\d+\s*$/.test(lines.at(-1) ?? "");
  return subripToCueText(limited(isNumber ? lines.slice(0, -1) : lines));
}

/** Parses the events of SubStation Alpha. */
function* assCues(lines: readonly string[]): Generator<void, TextCue[], void> {
  const cues: TextCue[] = [];
  let fields = ASS_FIELDS;
  let isEvents = false;
  for (const line of lines) {
    if (/^\s*\[/.test(line)) isEvents = /^\s*\[events\]/i.test(line);
    if (cues.length >= CUES_LIMIT) break;
    const event = line.slice(0, CUE_CHARACTERS_LIMIT);
    const [, key, value] = /^\s*(Format|Dialogue)\s*:(.*)$/i.exec(event) ?? [];
    if (!isEvents || key === undefined || value === undefined) continue;
    if (key.toLowerCase() === "format") {
      fields = value.split(",", FIELDS_LIMIT).map((field) => field.trim().toLowerCase());
      continue;
    }
    const parts = value.split(",");
    const of = (field: string) => parts[fields.indexOf(field)] ?? "";
    const [start, end] = [ASS_TIME.exec(of("start")), ASS_TIME.exec(of("end"))];
    yield;
    // The text is the last field and can contain commas.
    const own = parts.slice(fields.length - 1).join(",");
    const [text, isTop] = [assTextToCueText(own), isTopText(own)];
    if (!start || !end || text === "") continue;
    const [startSeconds, endSeconds] = [secondsOf(start, 1), secondsOf(end, 1)];
    if (endSeconds > startSeconds) cues.push({ startSeconds, endSeconds, text, ...(isTop && { isTop }) });
  }
  return cues;
}

/** The time in four groups of a match: hours, minutes, seconds, and the fraction. */
function secondsOf(match: RegExpExecArray, group: number): number {
  const [hours = "0", minutes = "0", seconds = "0", fraction = "0"] = match.slice(group, group + 4);
  return 3600 * Number(hours) + 60 * Number(minutes) + Number(seconds) + Number(`0.${fraction}`);
}

function limited(lines: readonly string[]): string {
  return lines.join("\n").slice(0, CUE_CHARACTERS_LIMIT);
}
