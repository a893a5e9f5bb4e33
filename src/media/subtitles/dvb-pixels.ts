import { BitReader } from "../bit-reader.ts";

/** The colour depth of a region in bits per pixel. */
export type RegionDepth = 2 | 4 | 8;

/** Pixels of a region in rows; colours by index. */
export interface PixelGrid {
  readonly width: number;
  readonly height: number;
  readonly depth: RegionDepth;
  readonly pixels: Uint8Array;
}

/** One field of an object, and where it is drawn. */
export interface PixelField {
  /** Pixel-data sub-blocks (ETSI EN 300 743 7.2.5.1). */
  readonly data: Uint8Array;
  readonly x: number;
  /** The first row; each following line is two rows lower. */
  readonly y: number;
  /** Pixels of colour 1 leave what is below them. */
  readonly keepsColour1: boolean;
}

const TYPE = {
  stuffing: 0,
  bits2: 0x10,
  bits4: 0x11,
  bits8: 0x12,
  map24: 0x20,
  map28: 0x21,
  map48: 0x22,
  endOfLine: 0xf0,
};

/** Draws a run of pixels. Returns true if the line is full. */
type Draw = (count: number, colour: number) => boolean;

/** Draws the lines of a field. What is outside of the grid is cut; throws `DecodeError` at the end of truncated data. */
export function drawField(grid: PixelGrid, { data, x, y, keepsColour1 }: PixelField): void {
  const reader = new BitReader(data, "DVB subtitle object");
  // The default map tables (10.4 to 10.6).
  let map24: readonly number[] = [0, 7, 8, 15];
  let map28: readonly number[] = [0, 0x77, 0x88, 0xff];
  let map48: readonly number[] = Array.from({ length: 16 }, (_, i) => 17 * i);
  let [column, row] = [x, y];
  const drawWith =
    (map: readonly number[] | undefined): Draw =>
    (count, code) => {
      const colour = map ? map[code]! : code;
      const end = Math.min(grid.width, column + count);
      if (row < grid.height && column < end && !(keepsColour1 && code === 1))
        grid.pixels.fill(colour, row * grid.width + column, row * grid.width + end);
      column = Math.min(grid.width, column + count);
      return column === grid.width;
    };
  const entries = (count: number, bits: number) => Array.from({ length: count }, () => reader.bits(bits));
  while (reader.left >= 8 && row < grid.height) {
    const type = reader.bits(8);
    if (type === TYPE.bits2)
      read2(reader, drawWith(grid.depth === 8 ? map28 : grid.depth === 4 ? map24 : undefined));
    else if (type === TYPE.bits4 && grid.depth >= 4)
      read4(reader, drawWith(grid.depth === 8 ? map48 : undefined));
    else if (type === TYPE.bits8 && grid.depth === 8) read8(reader, drawWith(undefined));
    else if (type === TYPE.map24) map24 = entries(4, 4);
    else if (type === TYPE.map28) map28 = entries(4, 8);
    else if (type === TYPE.map48) map48 = entries(16, 8);
    else if (type === TYPE.endOfLine) [column, row] = [x, row + 2];
    else if (type !== TYPE.stuffing) return;
    // Each string is padded to whole bytes.
    reader.skip(-reader.position & 7);
  }
}

/** A `2-bit/pixel_code_string` (7.2.5.2.1). */
function read2(reader: BitReader, draw: Draw): void {
  for (;;) {
    const colour = reader.bits(2);
    if (colour !== 0) draw(1, colour);
    else if (reader.flag()) draw(reader.bits(3) + 3, reader.bits(2));
    else if (reader.bits(1) === 1) draw(1, 0);
    else {
      const length = reader.bits(2);
      if (length === 0) return;
      if (length === 1) draw(2, 0);
      else if (length === 2) draw(reader.bits(4) + 12, reader.bits(2));
      else draw(reader.bits(8) + 29, reader.bits(2));
    }
  }
}

/** A `4-bit/pixel_code_string` (7.2.5.2.2). */
function read4(reader: BitReader, draw: Draw): void {
  for (;;) {
    const colour = reader.bits(4);
    if (colour !== 0) draw(1, colour);
    else if (!reader.flag()) {
      const count = reader.bits(3);
      if (count === 0) return;
      draw(count + 2, 0);
    } else if (reader.bits(1) === 0) draw(reader.bits(2) + 4, reader.bits(4));
    else {
      const length = reader.bits(2);
      if (length <= 1) draw(length + 1, 0);
      else if (length === 2) draw(reader.bits(4) + 9, reader.bits(4));
      else draw(reader.bits(8) + 25, reader.bits(4));
    }
  }
}

/** An `8-bit/pixel_code_string` (7.2.5.2.3). */
function read8(reader: BitReader, draw: Draw): void {
  for (let isFull = false; ; ) {
    const colour = reader.bits(8);
    if (colour !== 0) isFull = draw(1, colour);
    // The encoder of ffmpeg ends a line that is full with one byte. The second byte of other encoders is skipped as a type.
    else if (isFull) return;
    else {
      const hasColour = reader.flag();
      const count = reader.bits(7);
      if (!hasColour && count === 0) return;
      isFull = draw(count, hasColour ? reader.bits(8) : 0);
    }
  }
}
