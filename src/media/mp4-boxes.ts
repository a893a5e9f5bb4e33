import { latin1Text, readU32 } from "../base/bytes.ts";

/** The head of a box (ISO 14496-12 4.2). */
export interface Mp4Box {
  /** Four characters, such as `moov`. */
  readonly type: string;
  /** Position of its first byte. */
  readonly at: number;
  /** Position of its content. */
  readonly start: number;
  /** Position of its end; `Infinity` if it extends to the end of the file. */
  readonly end: number;
}

/** Maximum size of a box head: 8 bytes, and 8 more for a 64-bit size. */
export const MP4_HEAD_BYTES = 16;

/** Reads the box head at offset `at`; undefined if it is truncated or invalid. `base` is added to all positions. */
export function readMp4Box(bytes: Uint8Array, at: number, base = 0): Mp4Box | undefined {
  if (at + 8 > bytes.length) return undefined;
  const type = latin1Text(bytes.subarray(at + 4, at + 8));
  const size = readU32(bytes, at);
  if (size === 0) return { type, at: base + at, start: base + at + 8, end: Number.POSITIVE_INFINITY };
  if (size !== 1)
    return size < 8 ? undefined : { type, at: base + at, start: base + at + 8, end: base + at + size };
  if (at + 16 > bytes.length) return undefined;
  const large = readU64(bytes, at + 8);
  if (large < 16) return undefined;
  return { type, at: base + at, start: base + at + 16, end: base + at + large };
}

/** Calls `visit` for each box in the bytes `[from, to)`, up to the first invalid or truncated one. */
export function eachMp4Box(bytes: Uint8Array, from: number, to: number, visit: (box: Mp4Box) => void): void {
  let at = from;
  while (at < to) {
    const box = readMp4Box(bytes, at);
    if (!box) return;
    const end = Math.min(box.end, to);
    if (box.end > to && box.end !== Number.POSITIVE_INFINITY) return;
    visit({ ...box, end });
    at = end;
  }
}

/** Returns the first box at `path`, a list of box types from outside to inside; undefined if there is none. */
export function findMp4Box(
  bytes: Uint8Array,
  from: number,
  to: number,
  path: readonly string[],
): Mp4Box | undefined {
  let found: Mp4Box | undefined;
  eachMp4Box(bytes, from, to, (box) => {
    if (found || box.type !== path[0]) return;
    found = path.length === 1 ? box : findMp4Box(bytes, box.start, box.end, path.slice(1));
  });
  return found;
}

/** Reads a big-endian unsigned 64-bit integer; exact up to 2^53. */
export function readU64(bytes: Uint8Array, at: number): number {
  return readU32(bytes, at) * 2 ** 32 + readU32(bytes, at + 4);
}
