import { type FlatFormat, type FlatPicture, flatPicture } from "../h264-encode-picture.ts";
import { GLYPH_HEIGHT, GLYPH_WIDTH, isDotSet } from "./font.ts";

/** 640×360 at 25 frames a second; the last row of macroblocks is half seen. */
export const PATTERN_FORMAT: FlatFormat = {
  columns: 40,
  rows: 23,
  width: 640,
  height: 360,
  framesPerSecond: 25,
};

/** Squares of 4×4 pixels across. */
const WIDTH = 4 * PATTERN_FORMAT.columns;
const CHROMA_WIDTH = WIDTH / 2;

interface Colour {
  readonly luma: number;
  readonly blue: number;
  readonly red: number;
}

/** Bars of 75 % (ITU-R BT.709 limited range): white, yellow, cyan, green, magenta, red, blue, black. */
const BARS: readonly Colour[] = [
  { luma: 180, blue: 128, red: 128 },
  { luma: 168, blue: 44, red: 136 },
  { luma: 145, blue: 147, red: 44 },
  { luma: 133, blue: 63, red: 52 },
  { luma: 63, blue: 193, red: 204 },
  { luma: 51, blue: 109, red: 212 },
  { luma: 28, blue: 212, red: 120 },
  { luma: 16, blue: 128, red: 128 },
];
const STRIP: Colour = { luma: 40, blue: 128, red: 128 };
const PANEL: Colour = { luma: 32, blue: 138, red: 122 };
const WHITE = 235;
const GREY = 140;

/** Rows of squares where the parts of the picture begin; all but the text lie on macroblocks. */
const STRIP_AT = 32;
const PANEL_AT = 40;
const ROWS = 4 * PATTERN_FORMAT.rows;
/** The moving bar, and how far it goes in a frame: once across in 6.4 s. */
const BAR_WIDTH = 8;

/** A line of text: where it begins, in squares, and how many squares a dot is wide and high. */
interface TextPlace {
  readonly x: number;
  readonly y: number;
  readonly scale: number;
}

/** Where the clock, the date, the number of the frame in its second, and the words below stand. */
export const CLOCK_AT: TextPlace = { x: 10, y: 43, scale: 3 };
export const DATE_AT: TextPlace = { x: 4, y: 66, scale: 2 };
export const FRAME_AT: TextPlace = { x: 134, y: 66, scale: 2 };
const WORDS_AT: TextPlace = { x: 4, y: 82, scale: 1 };
const WORDS = "UTC   SLUICE TEST    FRAME";

/** What does not move, painted once. */
function background(): FlatPicture {
  const picture = flatPicture(PATTERN_FORMAT);
  const barWidth = WIDTH / BARS.length;
  for (const [i, bar] of BARS.entries()) fill(picture, i * barWidth, 0, barWidth, STRIP_AT, bar);
  fill(picture, 0, STRIP_AT, WIDTH, PANEL_AT - STRIP_AT, STRIP);
  fill(picture, 0, PANEL_AT, WIDTH, ROWS - PANEL_AT, PANEL);
  write(picture, WORDS, WORDS_AT, GREY);
  return picture;
}

/** Paints the pictures of the test pattern, each over the one before. */
export class PatternPainter {
  readonly #picture = background();

  /** The picture of frame `frame`, counted from 1970 on; the same object each time. */
  paint(frame: number): FlatPicture {
    const picture = this.#picture;
    const { framesPerSecond } = PATTERN_FORMAT;
    const { clock, date } = utcText(Math.floor(frame / framesPerSecond));
    write(picture, clock, CLOCK_AT, WHITE);
    write(picture, date, DATE_AT, GREY);
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
    picture.blue.fill(colour.blue, from, from + width / 2);
    picture.red.fill(colour.red, from, from + width / 2);
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

/** Writes over what stood there. */
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

/** `2026-11-21` and `06:29:40` of a time in seconds since 1970 (days by Howard Hinnant's civil calendar). */
export function utcText(unixSeconds: number): { readonly date: string; readonly clock: string } {
  const days = Math.floor(unixSeconds / 86_400) + 719_468;
  const era = Math.floor(days / 146_097);
  const dayOfEra = days - era * 146_097;
  const yearOfEra = Math.floor(
    (dayOfEra -
      Math.floor(dayOfEra / 1460) +
      Math.floor(dayOfEra / 36_524) -
      Math.floor(dayOfEra / 146_096)) /
      365,
  );
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const shifted = Math.floor((5 * dayOfYear + 2) / 153);
  const day = dayOfYear - Math.floor((153 * shifted + 2) / 5) + 1;
  const month = shifted < 10 ? shifted + 3 : shifted - 9;
  const year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0);
  const seconds = unixSeconds % 86_400;
  const two = (value: number) => String(value).padStart(2, "0");
  return {
    date: `${year}-${two(month)}-${two(day)}`,
    clock: [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60].map(two).join(":"),
  };
}
