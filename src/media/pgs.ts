import { concatBytes, readU16 } from "../base/bytes.ts";
import {
  type Crop,
  DRAWN_LIMIT_PIXELS,
  MAX_PIXELS,
  type PicturePart,
  type PictureState,
  rgbOf,
  runsOf,
} from "./picture-subtitles.ts";

/** Segment types of a Presentation Graphic Stream (Blu-ray; US 2009/0185789 A1). */
const SEGMENT = { palette: 0x14, object: 0x15, composition: 0x16, end: 0x80 };
/** The composition begins an epoch: objects and palettes of earlier ones are not used any more. */
const EPOCH_START = 0x80;
/** Limits for hostile files. Blu-ray permits 64 objects and 8 palettes of an epoch, and two objects on the screen. */
const OBJECTS_LIMIT = 64;
const PALETTES_LIMIT = 16;
const SHOWN_LIMIT = 8;
const OBJECT_BYTES_LIMIT = 4 * 1024 * 1024;

interface PgsObject {
  readonly width: number;
  readonly height: number;
  /** Run-length coded lines, in fragments. */
  readonly data: Uint8Array[];
  bytes: number;
}

interface PlacedObject {
  readonly id: number;
  readonly x: number;
  readonly y: number;
  readonly crop: Crop | undefined;
  readonly isForced: boolean;
}

interface Composition {
  readonly width: number;
  readonly height: number;
  readonly palette: number;
  readonly objects: readonly PlacedObject[];
}

/** Decodes PGS subtitles. Ignores what is damaged. */
export class PgsDecoder {
  readonly #objects = new Map<number, PgsObject>();
  /** Luma, red and blue difference, and opacity of 256 colours. */
  readonly #palettes = new Map<number, Uint8Array>();
  #composition: Composition | undefined;
  /** Pixels that were drawn so far. */
  #drawn = 0;

  /** Reads segments (type, length, content) and returns what they show; undefined if they do not complete a picture. */
  push(segments: Uint8Array, seconds: number): PictureState | undefined {
    let shown: PictureState | undefined;
    for (let at = 0; at + 3 <= segments.length; ) {
      const [type, end] = [segments[at]!, at + 3 + readU16(segments, at + 1)];
      if (end > segments.length) break;
      const body = segments.subarray(at + 3, end);
      if (type === SEGMENT.palette) this.#palette(body);
      else if (type === SEGMENT.object) this.#object(body);
      else if (type === SEGMENT.composition) this.#compose(body);
      else if (type === SEGMENT.end) shown = this.#show(seconds) ?? shown;
      at = end;
    }
    return shown;
  }

  #palette(body: Uint8Array): void {
    const id = body[0];
    if (id === undefined || (this.#palettes.size >= PALETTES_LIMIT && !this.#palettes.has(id))) return;
    const entries = this.#palettes.get(id)?.slice() ?? new Uint8Array(1024);
    for (let at = 2; at + 5 <= body.length; at += 5)
      entries.set(body.subarray(at + 1, at + 5), 4 * body[at]!);
    this.#palettes.set(id, entries);
  }

  #object(body: Uint8Array): void {
    if (body.length < 4) return;
    const id = readU16(body, 0);
    const isFirst = (body[3]! & 0x80) !== 0;
    if (isFirst) {
      if (body.length < 11 || (this.#objects.size >= OBJECTS_LIMIT && !this.#objects.has(id))) return;
      const [width, height] = [readU16(body, 7), readU16(body, 9)];
      this.#objects.delete(id);
      if (width === 0 || height === 0 || width * height > MAX_PIXELS) return;
      this.#objects.set(id, { width, height, data: [], bytes: 0 });
    }
    const object = this.#objects.get(id);
    const data = body.slice(isFirst ? 11 : 4);
    if (!object || object.bytes + data.length > OBJECT_BYTES_LIMIT) return;
    object.data.push(data);
    object.bytes += data.length;
  }

  #compose(body: Uint8Array): void {
    this.#composition = undefined;
    if (body.length < 11) return;
    if (body[7] === EPOCH_START) {
      this.#objects.clear();
      this.#palettes.clear();
    }
    const objects: PlacedObject[] = [];
    let at = 11;
    while (objects.length < Math.min(body[10]!, SHOWN_LIMIT) && at + 8 <= body.length) {
      const flags = body[at + 3]!;
      const isCropped = (flags & 0x80) !== 0 && at + 16 <= body.length;
      const crop = isCropped
        ? {
            x: readU16(body, at + 8),
            y: readU16(body, at + 10),
            width: readU16(body, at + 12),
            height: readU16(body, at + 14),
          }
        : undefined;
      const isForced = (flags & 0x40) !== 0;
      objects.push({
        id: readU16(body, at),
        x: readU16(body, at + 4),
        y: readU16(body, at + 6),
        crop,
        isForced,
      });
      at += isCropped ? 16 : 8;
    }
    this.#composition = { width: readU16(body, 0), height: readU16(body, 2), palette: body[9]!, objects };
  }

  #show(seconds: number): PictureState | undefined {
    const composition = this.#composition;
    if (!composition) return undefined;
    const { width, height, objects } = composition;
    const palette = this.#palettes.get(composition.palette);
    const parts = palette
      ? objects.flatMap((placed) => this.#part(placed, colours(palette, height > 576)))
      : [];
    const isForced = objects.some((placed) => placed.isForced);
    return { seconds, isForced, width, height, parts };
  }

  #part({ id, x, y, crop }: PlacedObject, palette: Uint8Array): PicturePart[] {
    const object = this.#objects.get(id);
    if (!object) return [];
    const whole = { x: 0, y: 0, width: object.width, height: object.height };
    const own = crop ? within(crop, whole) : whole;
    if (own.width <= 0 || own.height <= 0) return [];
    this.#drawn += object.width * object.height;
    if (this.#drawn > DRAWN_LIMIT_PIXELS) return [];
    const runs = runsOf(decodeRuns(concatBytes(object.data), object), object.width, own);
    return [{ x, y, width: own.width, height: own.height, palette, runs }];
  }
}

/** A display set of a `.sup` file: its segments, without the headers that precede them there. */
export interface DisplaySet {
  readonly seconds: number;
  readonly segments: Uint8Array;
  /** Where the next one begins, in bytes. */
  readonly end: number;
}

/** Each segment of a `.sup` file has `PG`, a presentation and a decoding time (90 kHz), its type and its length before it. */
const SUP_HEAD_BYTES = 13;

/** Returns the position of the first display set at or after `from`; -1 if there is none. Checks the two segments that follow. */
export function findDisplaySet(bytes: Uint8Array, from: number): number {
  for (let at = from; at + SUP_HEAD_BYTES <= bytes.length; at++) {
    if (!isSupHead(bytes, at) || bytes[at + 10] !== SEGMENT.composition) continue;
    const next = at + SUP_HEAD_BYTES + readU16(bytes, at + 11);
    if (next + SUP_HEAD_BYTES > bytes.length || isSupHead(bytes, next)) return at;
  }
  return -1;
}

/** Reads the display set at `at` of a `.sup` file; undefined if it is damaged or not complete. */
export function readDisplaySet(bytes: Uint8Array, at: number): DisplaySet | undefined {
  const segments: Uint8Array[] = [];
  const seconds = supSeconds(bytes, at);
  for (let next = at; next + SUP_HEAD_BYTES <= bytes.length && isSupHead(bytes, next); ) {
    const end = next + SUP_HEAD_BYTES + readU16(bytes, next + 11);
    if (end > bytes.length) return undefined;
    segments.push(bytes.subarray(next + 10, end));
    if (bytes[next + 10] === SEGMENT.end) return { seconds, segments: concatBytes(segments), end };
    next = end;
  }
  return undefined;
}

/** Returns the presentation time of the segment at `at` of a `.sup` file. */
export function supSeconds(bytes: Uint8Array, at: number): number {
  return (readU16(bytes, at + 2) * 65_536 + readU16(bytes, at + 4)) / 90_000;
}

function isSupHead(bytes: Uint8Array, at: number): boolean {
  return bytes[at] === 0x50 && bytes[at + 1] === 0x47;
}

/** Decodes run-length coded lines to colour indexes. A line that is too long is cut; the rest of a short one is transparent. */
function decodeRuns(data: Uint8Array, { width, height }: PgsObject): Uint8Array {
  const pixels = new Uint8Array(width * height).fill(255);
  let row = 0;
  let column = 0;
  for (let at = 0; at < data.length && row < height; ) {
    let colour = data[at++]!;
    let count = 1;
    if (colour === 0) {
      const flags = data[at++] ?? 0;
      count = flags & 0x3f;
      if (flags & 0x40) count = (count << 8) | (data[at++] ?? 0);
      if (flags & 0x80) colour = data[at++] ?? 0;
      if (flags === 0) {
        row++;
        column = 0;
        continue;
      }
    }
    const end = Math.min(width, column + count);
    pixels.fill(colour, row * width + column, row * width + end);
    column = end;
  }
  return pixels;
}

function colours(entries: Uint8Array, isHd: boolean): Uint8Array {
  const palette = new Uint8Array(1024);
  for (let at = 0; at < 1024; at += 4) {
    const [y, cr, cb, opacity] = entries.subarray(at, at + 4);
    palette.set([...rgbOf(y!, cb!, cr!, isHd), opacity!], at);
  }
  return palette;
}

function within(crop: Crop, { width, height }: Crop): Crop {
  const [x, y] = [Math.min(crop.x, width), Math.min(crop.y, height)];
  return { x, y, width: Math.min(crop.width, width - x), height: Math.min(crop.height, height - y) };
}
