import { readU16 } from "../../base/bytes.ts";
import { rgbOf } from "../picture-subtitles.ts";
import type { RegionDepth } from "./dvb-pixels.ts";

/** The colours of a CLUT for regions of each depth: red, green, blue and opacity of 4, 16 and 256 entries. */
export type DvbColours = Readonly<Record<RegionDepth, Uint8Array>>;

/** Returns the colours that a CLUT has before it is sent (ETSI EN 300 743 10). */
export function defaultColours(): DvbColours {
  const two = Uint8Array.from([0, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 255, 127, 127, 127, 255]);
  const four = new Uint8Array(64);
  const eight = new Uint8Array(1024);
  const bits = (index: number, first: number, second = 0) =>
    [0, 1, 2].map((bit) => ((index >> bit) & 1) * first + ((index >> (bit + 4)) & 1) * second);
  for (let i = 1; i < 16; i++) four.set([...bits(i, i < 8 ? 255 : 127), 255], 4 * i);
  for (let i = 1; i < 256; i++) {
    const kind = i & 0x88;
    if (i < 8) eight.set([...bits(i, 255), 63], 4 * i);
    else if (kind === 0x00) eight.set([...bits(i, 85, 170), 255], 4 * i);
    else if (kind === 0x08) eight.set([...bits(i, 85, 170), 127], 4 * i);
    else if (kind === 0x80) eight.set([...bits(i, 43, 85).map((level) => level + 127), 255], 4 * i);
    else eight.set([...bits(i, 43, 85), 255], 4 * i);
  }
  return { 2: two, 4: four, 8: eight };
}

/** Reads the entries of a CLUT definition segment (7.2.4), `body` without its first two bytes. */
export function readColours(body: Uint8Array, colours: DvbColours): void {
  for (let at = 0; at + 4 <= body.length; ) {
    const [index, flags] = [body[at]!, body[at + 1]!];
    const isFull = (flags & 1) !== 0;
    if (isFull && at + 6 > body.length) return;
    const [y, cr, cb, transparency] = isFull ? body.subarray(at + 2, at + 6) : reduced(body, at + 2);
    // Luma 0 means transparent, whatever the entry says.
    const opacity = y === 0 ? 0 : 255 - transparency!;
    const colour = [...rgbOf(y!, cb!, cr!, false), opacity];
    if (flags & 0x80 && index < 4) colours[2].set(colour, 4 * index);
    if (flags & 0x40 && index < 16) colours[4].set(colour, 4 * index);
    if (flags & 0x20) colours[8].set(colour, 4 * index);
    at += isFull ? 6 : 4;
  }
}

/** An entry of 6, 4, 4 and 2 bits. */
function reduced(body: Uint8Array, at: number): readonly number[] {
  const bits = readU16(body, at);
  return [(bits >> 10) << 2, ((bits >> 6) & 15) << 4, ((bits >> 2) & 15) << 4, (bits & 3) << 6];
}
