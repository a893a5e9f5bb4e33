/** A picture of a subtitle track, with colours by index. */
export interface PicturePart {
  /** Pixels of the screen. */
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  /** Red, green, blue and opacity of each colour. */
  readonly palette: Uint8Array;
  /** The pixels in rows: a count (1 to 255) and the index of a colour for each run. */
  readonly runs: Uint8Array;
}

/** What a track of pictures shows from a time on. */
export interface PictureState {
  readonly seconds: number;
  readonly isForced: boolean;
  /** The size of the screen to which the parts refer. */
  readonly width: number;
  readonly height: number;
  /** Empty if nothing is shown. */
  readonly parts: readonly PicturePart[];
}

/** Times `[from, to)` of a film. */
export interface SecondsRange {
  readonly from: number;
  readonly to: number;
}

/** Limit of a picture, which a few hostile bytes can exceed: 4K. */
export const MAX_PIXELS = 3840 * 2160;

/**
 * Limit of the pixels that one decoder draws, which takes about a second: a hostile packet of 20 bytes can draw a whole picture. A decoder reads
 * what one request needs; 128 full HD pictures are within the limit.
 */
export const DRAWN_LIMIT_PIXELS = 32 * MAX_PIXELS;

/** A rectangle of a picture. */
export interface Crop {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** Returns the pixels of a rectangle as runs. `pixels` has rows of `stride`. */
export function runsOf(pixels: Uint8Array, stride: number, { x, y, width, height }: Crop): Uint8Array {
  let out = new Uint8Array(4096);
  let length = 0;
  let colour = -1;
  let count = 0;
  const flush = () => {
    if (count === 0) return;
    if (length + 2 > out.length) {
      const larger = new Uint8Array(2 * out.length);
      larger.set(out);
      out = larger;
    }
    out[length++] = count;
    out[length++] = colour;
  };
  for (let row = y; row < y + height; row++) {
    for (let at = row * stride + x; at < row * stride + x + width; at++) {
      if (pixels[at] === colour && count < 255) {
        count++;
        continue;
      }
      flush();
      colour = pixels[at]!;
      count = 1;
    }
  }
  flush();
  return out.slice(0, length);
}

/** Converts a colour of video (limited range) to red, green and blue. `isHd`: BT.709, else BT.601. */
export function rgbOf(y: number, cb: number, cr: number, isHd: boolean): [number, number, number] {
  const [redCr, greenCb, greenCr, blueCb] = isHd
    ? [1.793, 0.213, 0.533, 2.112]
    : [1.596, 0.392, 0.813, 2.017];
  const luma = 1.164 * (y - 16);
  const [u, v] = [cb - 128, cr - 128];
  const byte = (value: number) => Math.max(0, Math.min(255, Math.round(value)));
  return [byte(luma + redCr! * v), byte(luma - greenCb! * u - greenCr! * v), byte(luma + blueCb! * u)];
}
