import { isoTime } from "../../base/iso-time.ts";
import { type FlatFormat, type FlatPicture, flatPicture } from "../h264-encode-picture.ts";
import { GLYPH_HEIGHT, GLYPH_WIDTH, isDotSet } from "./font.ts";

/** 640×360 at 25 frames per second; half of the last row of macroblocks is visible. */
export const PATTERN_FORMAT: FlatFormat = {
  columns: 40,
  rows: 23,
  width: 640,
  height: 360,
  framesPerSecond: 25,
};

/** Width in squares of 4×4 pixels. */
const WIDTH = 4 * PATTERN_FORMAT.columns;
const CHROMA_WIDTH = WIDTH / 2;

interface Colour {
  readonly luma: number;
  readonly cb: number;
  readonly cr: number;
}

/** Colour bars at 75 % (ITU-R BT.709 limited range): white, yellow, cyan, green, magenta, red, blue, black. */
const BARS: readonly Colour[] = [
  { luma: 180, cb: 128, cr: 128 },
  { luma: 168, cb: 44, cr: 136 },
  { luma: 145, cb: 147, cr: 44 },
  { luma: 133, cb: 63, cr: 52 },
  { luma: 63, cb: 193, cr: 204 },
  { luma: 51, cb: 109, cr: 212 },
  { luma: 28, cb: 212, cr: 120 },
  { luma: 16, cb: 128, cr: 128 },
];
const STRIP: Colour = { luma: 40, cb: 128, cr: 128 };
const PANEL: Colour = { luma: 32, cb: 138, cr: 122 };
const WHITE = 235;
const GREY = 140;

/** First rows of the parts of the picture, in squares; all but the text are aligned to macroblocks. */
const STRIP_AT = 32;
const PANEL_AT = 40;
const ROWS = 4 * PATTERN_FORMAT.rows;
/** Width of the moving bar in squares; it moves one square per frame and crosses the picture in 6.4 s. */
const BAR_WIDTH = 8;

/** A line of text: its position in squares, and the size of a dot in squares. */
interface TextPlace {
  readonly x: number;
  readonly y: number;
  readonly scale: number;
}

/** Positions of the clock, the date, the frame number within its second, and the labels. */
const CLOCK_AT: TextPlace = { x: 10, y: 43, scale: 3 };
const DATE_AT: TextPlace = { x: 4, y: 66, scale: 2 };
const FRAME_AT: TextPlace = { x: 134, y: 66, scale: 2 };
const LABELS_AT: TextPlace = { x: 4, y: 82, scale: 1 };
const LABELS = "UTC   SLUICE TEST    FRAME";
/** Characters of the labels, or of the message in their place. */
const MAX_LABELS = 26;

/** Paints the static parts; a message replaces the labels. */
function background(message: string): FlatPicture {
  const picture = flatPicture(PATTERN_FORMAT);
  const barWidth = WIDTH / BARS.length;
  for (const [i, bar] of BARS.entries()) fill(picture, i * barWidth, 0, barWidth, STRIP_AT, bar);
  fill(picture, 0, STRIP_AT, WIDTH, PANEL_AT - STRIP_AT, STRIP);
  fill(picture, 0, PANEL_AT, WIDTH, ROWS - PANEL_AT, PANEL);
  // The font has capital letters without accents.
  const plain = message.normalize("NFKD").replace(/\p{M}/gu, "").toUpperCase();
  write(picture, [...plain].slice(0, MAX_LABELS).join(""), LABELS_AT, GREY);
  return picture;
}

/** Paints the pictures of the test pattern, each over the previous one. */
export class PatternPainter {
  readonly #picture: FlatPicture;

  /** @param message replaces the labels; characters beyond the 26th and those without a glyph are left out */
  constructor(message = LABELS) {
    this.#picture = background(message);
  }

  /** Returns the picture of frame `frame`, counted from 1970; the same object every time. */
  paint(frame: number): FlatPicture {
    const picture = this.#picture;
    const { framesPerSecond } = PATTERN_FORMAT;
    const time = isoTime(Math.floor(frame / framesPerSecond) * 1000);
    write(picture, time.slice(11, 19), CLOCK_AT, WHITE);
    write(picture, time.slice(0, 10), DATE_AT, GREY);
    write(picture, String(frame % framesPerSecond).padStart(2, "0"), FRAME_AT, WHITE);
    fill(picture, 0, STRIP_AT, WIDTH, PANEL_AT - STRIP_AT, STRIP);
    for (let i = 0; i < BAR_WIDTH; i++)
      fillLuma(picture, (frame + i) % WIDTH, STRIP_AT, 1, PANEL_AT - STRIP_AT, WHITE);
    return picture;
  }
}

function fill(picture: FlatPicture, x: number, y: number, width: number, height: number, colour: Colour) {
  fillLuma(picture, x, y, width, height, colour.luma);
  for (let row = y / 2; row < (y + height) / 2; row++) {
    const from = row * CHROMA_WIDTH + x / 2;
    picture.cb.fill(colour.cb, from, from + width / 2);
    picture.cr.fill(colour.cr, from, from + width / 2);
  }
}

function fillLuma(
  { luma }: FlatPicture,
  x: number,
  y: number,
  width: number,
  height: number,
  value: number,
): void {
  for (let row = y; row < y + height; row++) luma.fill(value, row * WIDTH + x, row * WIDTH + x + width);
}

/** Writes text over the previous content. */
function write(picture: FlatPicture, text: string, { x, y, scale }: TextPlace, ink: number): void {
  for (const [i, character] of [...text].entries()) {
    const left = x + i * (GLYPH_WIDTH + 1) * scale;
    for (let dotY = 0; dotY < GLYPH_HEIGHT; dotY++) {
      for (let dotX = 0; dotX < GLYPH_WIDTH; dotX++) {
        const value = isDotSet(character, dotX, dotY) ? ink : PANEL.luma;
        fillLuma(picture, left + dotX * scale, y + dotY * scale, scale, scale, value);
      }
    }
  }
}
