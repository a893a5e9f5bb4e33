/** A picture to encode. */
export interface SentPicture {
  readonly width: number;
  readonly height: number;
  readonly x: number;
  readonly y: number;
  /** Colour indexes in rows. */
  readonly pixels: readonly number[];
  /** Index, luma, red and blue difference, opacity. */
  readonly palette?: readonly (readonly [number, number, number, number, number])[];
  readonly crop?: { readonly x: number; readonly y: number; readonly width: number; readonly height: number };
}

/** A display set that shows one picture on a screen of 1920 × 1080. */
export function pgsPicture({ width, height, x, y, pixels, palette = [], crop }: SentPicture): Uint8Array {
  const coded = encodeRows(pixels, width);
  const size = coded.length + 4;
  const placed = [0, 7, 0, crop ? 0x80 : 0, ...u16(x), ...u16(y)];
  const cropped = crop ? [crop.x, crop.y, crop.width, crop.height].flatMap(u16) : [];
  return Uint8Array.from([
    ...segment(0x16, [...u16(1920), ...u16(1080), 0x10, 0, 1, 0x80, 0, 0, 1, ...placed, ...cropped]),
    ...segment(0x17, [1, 0, ...u16(x), ...u16(y), ...u16(width), ...u16(height)]),
    ...segment(0x14, [0, 0, ...palette.flat()]),
    ...segment(0x15, [
      0,
      7,
      0,
      0xc0,
      size >> 16,
      ...u16(size & 0xffff),
      ...u16(width),
      ...u16(height),
      ...coded,
    ]),
    ...segment(0x80, []),
  ]);
}

/** A display set that shows nothing. */
export function pgsClear(): Uint8Array {
  return Uint8Array.from([
    ...segment(0x16, [...u16(1920), ...u16(1080), 0x10, 0, 2, 0, 0, 0, 0]),
    ...segment(0x80, []),
  ]);
}

/** A `.sup` file of display sets, each with its time in seconds. */
export function supOf(sets: readonly (readonly [seconds: number, segments: Uint8Array])[]): Uint8Array {
  const out: number[] = [];
  for (const [seconds, segments] of sets)
    for (let at = 0; at < segments.length; ) {
      const end = at + 3 + ((segments[at + 1]! << 8) | segments[at + 2]!);
      const ticks = Math.round(seconds * 90_000);
      out.push(
        0x50,
        0x47,
        ...u16(ticks >>> 16),
        ...u16(ticks & 0xffff),
        0,
        0,
        0,
        0,
        ...segments.subarray(at, end),
      );
      at = end;
    }
  return Uint8Array.from(out);
}

function encodeRows(pixels: readonly number[], width: number): number[] {
  const out: number[] = [];
  for (let row = 0; row < pixels.length; row += width) {
    for (let at = row; at < Math.min(row + width, pixels.length); ) {
      let count = 1;
      while (at + count < row + width && pixels[at + count] === pixels[at]) count++;
      out.push(...encodeRun(pixels[at]!, count));
      at += count;
    }
    out.push(0, 0);
  }
  return out;
}

function encodeRun(colour: number, count: number): number[] {
  if (colour === 0) return count < 64 ? [0, count] : [0, 0x40 | (count >> 8), count & 255];
  if (count < 3) return Array<number>(count).fill(colour);
  return count < 64 ? [0, 0x80 | count, colour] : [0, 0xc0 | (count >> 8), count & 255, colour];
}

function segment(type: number, body: readonly number[]): number[] {
  return [type, ...u16(body.length), ...body];
}

function u16(value: number): number[] {
  return [value >> 8, value & 255];
}
