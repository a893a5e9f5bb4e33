import { concatBytes, readU16 } from "../base/bytes.ts";
import { MAX_PIXELS, type PicturePart, type PictureState, runsOf } from "./picture-subtitles.ts";

/** The head of VobSub subtitles: an `.idx` file, or the private data of a Matroska track. */
export interface VobsubHead {
  readonly width: number;
  readonly height: number;
  /** Red, green and blue of 16 colours. */
  readonly palette: Uint8Array;
  /** The languages of an `.idx` file; one without entries for a Matroska track. */
  readonly languages: readonly VobsubLanguage[];
}

/** A language of an `.idx` file. */
interface VobsubLanguage {
  /** The number of its stream in the `.sub` file. */
  readonly index: number;
  /** ISO 639-1. */
  readonly language: string;
  /** In order of their times. */
  readonly entries: readonly { readonly seconds: number; readonly position: number }[];
}

/** Limits for hostile files. */
const LANGUAGES_LIMIT = 32;
const ENTRIES_LIMIT = 50_000;
const LINES_LIMIT = 200_000;
/** Control sequences of one packet: one to show, one to hide, some that fade. */
const SEQUENCES_LIMIT = 64;
/** The unit of delays: 1024 ticks of 90 kHz. */
const DELAY_SECONDS = 1024 / 90_000;

/** Parses the text of an `.idx` file, or of the private data of a track. Lines that are not known are skipped. */
export function parseVobsubHead(text: string): VobsubHead {
  let [width, height, offsetSeconds] = [720, 576, 0];
  const palette = new Uint8Array(48).fill(255);
  const languages: { index: number; language: string; entries: { seconds: number; position: number }[] }[] =
    [];
  let total = 0;
  for (const line of text.split(/\r?\n/, LINES_LIMIT)) {
    const [, key = "", value = ""] = /^\s*([a-z ]{1,20}):\s*(.{0,400})/i.exec(line) ?? [];
    if (key === "timestamp") {
      const own = languages.at(-1);
      const time = /^(-?)(\d+):(\d+):(\d+):(\d+),\s*filepos:\s*([0-9a-f]{1,12})/i.exec(value);
      if (!own || !time || total++ >= ENTRIES_LIMIT) continue;
      own.entries.push({ seconds: offsetSeconds + secondsOf(time), position: Number.parseInt(time[6]!, 16) });
    } else if (key === "size") {
      const size = /^(\d{1,5})x(\d{1,5})/.exec(value);
      if (size) [width, height] = [Number(size[1]), Number(size[2])];
    } else if (key === "palette") {
      for (const [nth, colour] of value.split(",", 16).entries())
        for (let byte = 0; byte < 3; byte++)
          palette[3 * nth + byte] = Number.parseInt(colour.trim().slice(2 * byte, 2 * byte + 2), 16) || 0;
    } else if (key === "id") {
      const [, language = "", index = "0"] = /^([a-z-]{0,8}),\s*index:\s*(\d{1,2})/i.exec(value) ?? [];
      offsetSeconds = 0;
      if (languages.length < LANGUAGES_LIMIT) languages.push({ index: Number(index), language, entries: [] });
    } else if (key === "delay" || key === "time offset") {
      const time = /^(-?)(\d+):(\d+):(\d+):(\d+)/.exec(value);
      offsetSeconds += time ? secondsOf(time) : Number.parseInt(value, 10) / 1000 || 0;
    }
  }
  for (const { entries } of languages) entries.sort((a, b) => a.seconds - b.seconds);
  return { width, height, palette, languages: languages.filter(({ entries }) => entries.length > 0) };
}

function secondsOf([, sign, hours, minutes, seconds, ms]: RegExpExecArray): number {
  const time = 3600 * Number(hours) + 60 * Number(minutes) + Number(seconds) + Number(ms) / 1000;
  return sign === "-" ? -time : time;
}

/**
 * Collects a subpicture packet from the MPEG program stream `bytes`, which begins with its first packet. Returns undefined if it is
 * damaged or not complete.
 */
export function subpictureIn(bytes: Uint8Array, index: number): Uint8Array | undefined {
  const parts: Uint8Array[] = [];
  let length = 0;
  let size = 0;
  for (
    let at = 0;
    at + 6 <= bytes.length && bytes[at] === 0 && bytes[at + 1] === 0 && bytes[at + 2] === 1;
  ) {
    const id = bytes[at + 3]!;
    if (id === 0xba) {
      // A pack header of MPEG-2, with stuffing.
      at += 14 + ((bytes[at + 13] ?? 0) & 7);
      continue;
    }
    const end = at + 6 + readU16(bytes, at + 4);
    const body = at + 9 + (bytes[at + 8] ?? 0);
    if (id === 0xbd && body < end && end <= bytes.length && bytes[body] === 0x20 + index) {
      parts.push(bytes.subarray(body + 1, end));
      length += end - body - 1;
      if (size === 0 && length >= 2) size = readU16(concatBytes(parts), 0);
      if (size > 0 && length >= size) return concatBytes(parts).subarray(0, size);
    }
    at = end;
  }
  return undefined;
}

/** What a sequence of control commands sets. */
interface Display {
  readonly colours: number[];
  readonly opacities: number[];
  area: { x: number; y: number; width: number; height: number } | undefined;
  /** Where the lines of both fields begin. */
  fields: [number, number] | undefined;
}

/** Decodes a subpicture packet of a DVD: what is shown from `seconds` on, and when it disappears. Ignores what is damaged. */
export function decodeSubpicture(
  packet: Uint8Array,
  seconds: number,
  { width, height, palette }: VobsubHead,
): PictureState[] {
  const states: PictureState[] = [];
  const display: Display = {
    colours: [0, 0, 0, 0],
    opacities: [0, 0, 0, 0],
    area: undefined,
    fields: undefined,
  };
  if (packet.length < 4) return states;
  let at = readU16(packet, 2);
  let isForced = false;
  let pixels = 0;
  for (let count = 0; count < SEQUENCES_LIMIT && at + 4 <= packet.length; count++) {
    const time = seconds + readU16(packet, at) * DELAY_SECONDS;
    const next = readU16(packet, at + 2);
    const command = runCommands(packet, at + 4, display);
    isForced ||= command === "force";
    const screen = { seconds: time, isForced, width, height };
    if (command && command !== "hide")
      pixels += Math.max(0, display.area?.width ?? 0) * Math.max(0, display.area?.height ?? 0);
    // A hostile packet draws one large picture in many sequences.
    if (pixels > MAX_PIXELS) break;
    if (command === "hide") states.push({ ...screen, parts: [] });
    else if (command) states.push({ ...screen, parts: drawn(packet, display, palette) });
    // The last sequence refers to itself.
    if (next <= at) break;
    at = next;
  }
  return states;
}

function runCommands(
  packet: Uint8Array,
  from: number,
  display: Display,
): "show" | "force" | "hide" | undefined {
  let result: "show" | "force" | "hide" | undefined;
  for (let at = from; at < packet.length; ) {
    const command = packet[at++]!;
    const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0] = packet.subarray(at, at + 6);
    if (command === 0) result = "force";
    else if (command === 1) result ??= "show";
    else if (command === 2) result = "hide";
    else if (command === 3 || command === 4) {
      // Four colours or opacities, the last one first.
      const values = command === 3 ? display.colours : display.opacities;
      values.splice(0, 4, b & 15, b >> 4, a & 15, a >> 4);
      at += 2;
    } else if (command === 5) {
      const [x, right, y, bottom] = [
        (a << 4) | (b >> 4),
        ((b & 15) << 8) | c,
        (d << 4) | (e >> 4),
        ((e & 15) << 8) | f,
      ];
      display.area = { x, y, width: right - x + 1, height: bottom - y + 1 };
      at += 6;
    } else if (command === 6) {
      display.fields = [(a << 8) | b, (c << 8) | d];
      at += 4;
    } else if (command === 7) at += Math.max(2, (a << 8) | b);
    else return result;
  }
  return result;
}

function drawn(
  packet: Uint8Array,
  { area, fields, colours, opacities }: Display,
  palette: Uint8Array,
): PicturePart[] {
  if (!area || !fields || area.width <= 0 || area.height <= 0 || area.width * area.height > MAX_PIXELS)
    return [];
  const pixels = new Uint8Array(area.width * area.height);
  for (const [field, start] of fields.entries())
    decodeField(packet, start, pixels, area.width, area.height, field);
  const own = new Uint8Array(16);
  for (let index = 0; index < 4; index++) {
    const from = 3 * colours[index]!;
    own.set([...palette.subarray(from, from + 3), 17 * opacities[index]!], 4 * index);
  }
  const whole = { x: 0, y: 0, width: area.width, height: area.height };
  return [{ ...area, palette: own, runs: runsOf(pixels, area.width, whole) }];
}

/** Decodes every second line, from line `field` on: runs of 4 to 16 bits, each line at a byte. */
function decodeField(
  packet: Uint8Array,
  start: number,
  pixels: Uint8Array,
  width: number,
  height: number,
  field: number,
): void {
  let nibbles = 2 * start;
  const next = () => {
    const byte = packet[nibbles >> 1] ?? 0;
    return nibbles++ & 1 ? byte & 15 : byte >> 4;
  };
  for (let row = field; row < height && nibbles < 2 * packet.length; row += 2) {
    for (let column = 0; column < width && nibbles < 2 * packet.length; ) {
      let value = next();
      // 4, 8, 12 or 16 bits: the smaller the value, the longer.
      for (let limit = 0x4; value < limit && limit <= 0x40; limit *= 4) value = (value << 4) | next();
      const count = value >> 2 || width;
      const end = Math.min(width, column + count);
      pixels.fill(value & 3, row * width + column, row * width + end);
      column = end;
    }
    nibbles += nibbles & 1;
  }
}
