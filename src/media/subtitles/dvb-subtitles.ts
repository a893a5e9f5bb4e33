import { readU16 } from "../../base/bytes.ts";
import { DecodeError } from "../../base/errors.ts";
import {
  DRAWN_LIMIT_PIXELS,
  MAX_PIXELS,
  type PicturePart,
  type PictureState,
  runsOf,
} from "../picture-subtitles.ts";
import { type DvbColours, defaultColours, readColours } from "./dvb-colours.ts";
import { drawField, type PixelGrid } from "./dvb-pixels.ts";

/** The pages of a subtitling descriptor that belong to one language (ETSI EN 300 468 6.2.41). */
export interface DvbPage {
  readonly composition: number;
  /** Shared by languages. */
  readonly ancillary: number;
}

/** A picture of {@link DvbDecoder}. */
export interface DvbState extends PictureState {
  /** When the picture disappears unless another one replaces it. */
  readonly untilSeconds: number;
}

/** Segment types (ETSI EN 300 743 table 7). */
const SEGMENT = { page: 0x10, region: 0x11, colours: 0x12, object: 0x13, display: 0x14 };
const SYNC = 0x0f;
/** The display without a display definition segment (7.2.1). */
const DEFAULT_DISPLAY = { width: 720, height: 576, x: 0, y: 0 };
/** Limits for hostile streams. Receivers have memory for a full screen of pixels; streams use a handful of regions. */
const REGIONS_LIMIT = 32;
const COLOURS_LIMIT = 32;
const PLACES_LIMIT = 64;
/** A region that shows one object more often is damaged. */
const DRAWS_LIMIT = 16;

interface Region extends PixelGrid {
  readonly colours: number;
  readonly places: readonly ObjectPlace[];
}

interface ObjectPlace {
  readonly object: number;
  readonly x: number;
  readonly y: number;
}

interface ShownRegion {
  readonly region: number;
  readonly x: number;
  readonly y: number;
}

/** Decodes DVB subtitles (ETSI EN 300 743) of one language. Ignores what is damaged. */
export class DvbDecoder {
  readonly #page: DvbPage;
  readonly #regions = new Map<number, Region>();
  readonly #colours = new Map<number, DvbColours>();
  #display = DEFAULT_DISPLAY;
  #shown: readonly ShownRegion[] | undefined;
  #timeoutSeconds = 0;
  /** Pixels that were drawn so far. */
  #drawn = 0;

  constructor(page: DvbPage) {
    this.#page = page;
  }

  /** Reads the data of a PES packet and returns what it shows from `seconds` on; undefined if it does not complete a picture. */
  push(data: Uint8Array, seconds: number): DvbState | undefined {
    // data_identifier and subtitle_stream_id (7.1).
    if (data[0] !== 0x20 || data[1] !== 0 || this.#drawn > DRAWN_LIMIT_PIXELS) return undefined;
    let hasPage = false;
    for (let at = 2; at + 6 <= data.length && data[at] === SYNC; ) {
      const [type, page, end] = [data[at + 1]!, readU16(data, at + 2), at + 6 + readU16(data, at + 4)];
      if (end > data.length) break;
      const isOwn = page === this.#page.composition || page === this.#page.ancillary;
      if (isOwn) {
        this.#read(type, data.subarray(at + 6, end));
        hasPage ||= type === SEGMENT.page;
      }
      at = end;
    }
    // Once for a packet, because hostile ones repeat pages. Old encoders write no end segment.
    return hasPage ? this.#state(seconds) : undefined;
  }

  #read(type: number, body: Uint8Array): void {
    try {
      if (type === SEGMENT.display) this.#readDisplay(body);
      else if (type === SEGMENT.page) this.#readPage(body);
      else if (type === SEGMENT.region) this.#readRegion(body);
      else if (type === SEGMENT.colours) this.#readColours(body);
      else if (type === SEGMENT.object) this.#readObject(body);
    } catch (error) {
      if (!(error instanceof DecodeError)) throw error;
    }
  }

  #readDisplay(body: Uint8Array): void {
    if (body.length < 5) return;
    const [width, height] = [readU16(body, 1) + 1, readU16(body, 3) + 1];
    if (width * height > MAX_PIXELS) return;
    const hasWindow = (body[0]! & 8) !== 0 && body.length >= 13;
    const [x, y] = hasWindow ? [readU16(body, 5), readU16(body, 9)] : [0, 0];
    this.#display = { width, height, x, y };
  }

  #readPage(body: Uint8Array): void {
    if (body.length < 2) return;
    this.#timeoutSeconds = body[0]!;
    const isNormal = ((body[1]! >> 2) & 3) === 0;
    if (!isNormal) {
      this.#regions.clear();
      this.#colours.clear();
    }
    const shown: ShownRegion[] = [];
    for (let at = 2; at + 6 <= body.length && shown.length < REGIONS_LIMIT; at += 6) {
      const region = body[at]!;
      // A page shows each region once (7.2.2).
      if (shown.some((each) => each.region === region)) continue;
      shown.push({ region, x: readU16(body, at + 2), y: readU16(body, at + 4) });
    }
    this.#shown = shown;
  }

  #readRegion(body: Uint8Array): void {
    if (body.length < 10) return;
    const [id, width, height] = [body[0]!, readU16(body, 2), readU16(body, 4)];
    const depth = ([undefined, 2, 4, 8] as const)[(body[6]! >> 2) & 7];
    const others = [...this.#regions].filter(([other]) => other !== id);
    const pixelsInUse = others.reduce((sum, [, region]) => sum + region.pixels.length, 0);
    if (depth === undefined || width === 0 || height === 0) return;
    if (others.length >= REGIONS_LIMIT || pixelsInUse + width * height > MAX_PIXELS) return;
    const before = this.#regions.get(id);
    const isSame = before?.width === width && before.height === height && before.depth === depth;
    const fills = (body[1]! & 8) !== 0;
    const fill = { 2: (body[9]! >> 2) & 3, 4: body[9]! >> 4, 8: body[8]! }[depth];
    if (fills || !isSame) this.#drawn += width * height;
    if (this.#drawn > DRAWN_LIMIT_PIXELS) return;
    const pixels = isSame ? before.pixels : new Uint8Array(width * height);
    if (fills) pixels.fill(fill);
    this.#regions.set(id, { width, height, depth, pixels, colours: body[7]!, places: placesOf(body) });
  }

  #readColours(body: Uint8Array): void {
    const id = body[0];
    if (id === undefined || (this.#colours.size >= COLOURS_LIMIT && !this.#colours.has(id))) return;
    const colours = this.#colours.get(id) ?? defaultColours();
    readColours(body.subarray(2), colours);
    this.#colours.set(id, colours);
  }

  /** Objects are drawn when they arrive, into the regions that list them. */
  #readObject(body: Uint8Array): void {
    if (body.length < 7) return;
    const object = readU16(body, 0);
    const codingMethod = (body[2]! >> 2) & 3;
    // Text needs the fonts of the receiver; no broadcaster uses it.
    if (codingMethod !== 0) return;
    const topEnd = 7 + readU16(body, 3);
    const bottomEnd = topEnd + readU16(body, 5);
    const top = body.subarray(7, topEnd);
    // An object without a bottom field repeats the top field.
    const bottom = bottomEnd > topEnd ? body.subarray(topEnd, bottomEnd) : top;
    const keepsColour1 = (body[2]! & 2) !== 0;
    let draws = 0;
    for (const region of this.#regions.values())
      for (const place of region.places) {
        if (place.object !== object || draws++ >= DRAWS_LIMIT) continue;
        drawSafely(region, { data: top, x: place.x, y: place.y, keepsColour1 });
        drawSafely(region, { data: bottom, x: place.x, y: place.y + 1, keepsColour1 });
      }
  }

  #state(seconds: number): DvbState {
    const { width, height, x, y } = this.#display;
    const parts = (this.#shown ?? []).flatMap((shown): PicturePart[] => {
      const region = this.#regions.get(shown.region);
      if (!region) return [];
      this.#drawn += region.pixels.length;
      if (this.#drawn > DRAWN_LIMIT_PIXELS) return [];
      const colours = (this.#colours.get(region.colours) ?? defaultColours())[region.depth];
      const palette = new Uint8Array(1024);
      palette.set(colours);
      const whole = { x: 0, y: 0, width: region.width, height: region.height };
      const runs = runsOf(region.pixels, region.width, whole);
      const isEmpty = isTransparent(runs, palette);
      return isEmpty ? [] : [{ ...whole, x: x + shown.x, y: y + shown.y, palette, runs }];
    });
    return { seconds, untilSeconds: seconds + this.#timeoutSeconds, isForced: false, width, height, parts };
  }
}

function placesOf(body: Uint8Array): ObjectPlace[] {
  const places: ObjectPlace[] = [];
  for (let at = 10; at + 6 <= body.length && places.length < PLACES_LIMIT; ) {
    const type = body[at + 2]! >> 6;
    places.push({
      object: readU16(body, at),
      x: readU16(body, at + 2) & 0xfff,
      y: readU16(body, at + 4) & 0xfff,
    });
    // Characters have a foreground and a background colour.
    at += type === 1 || type === 2 ? 8 : 6;
  }
  return places;
}

/** Draws a field; a truncated one as far as it goes. */
function drawSafely(region: Region, field: Parameters<typeof drawField>[1]): void {
  try {
    drawField(region, field);
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
  }
}

function isTransparent(runs: Uint8Array, palette: Uint8Array): boolean {
  for (let at = 1; at < runs.length; at += 2) if (palette[4 * runs[at]! + 3] !== 0) return false;
  return true;
}
