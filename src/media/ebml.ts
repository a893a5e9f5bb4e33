import { readU32 } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";

/** The head of one EBML element (RFC 8794 6). */
export interface EbmlHead {
  readonly id: number;
  /** Offset of its data. */
  readonly start: number;
  /** Offset of the end of its data, possibly beyond the given bytes; undefined for an unknown size (RFC 8794 6.2). */
  readonly end: number | undefined;
}

/** Maximum size of an element head: 4 bytes of id, 8 of size. */
export const EBML_HEAD_BYTES = 12;

/** Reads the element head at offset `at`; undefined if it is truncated or invalid. */
export function readEbmlHead(bytes: Uint8Array, at: number): EbmlHead | undefined {
  const first = bytes[at];
  if (first === undefined || first < 0x10) return undefined;
  const idLength = Math.clz32(first) - 23;
  if (at + idLength >= bytes.length) return undefined;
  let id = 0;
  for (let i = 0; i < idLength; i++) id = id * 256 + bytes[at + i]!;
  const size = readVint(bytes, at + idLength);
  if (!size) return undefined;
  const start = at + idLength + size.length;
  return { id, start, end: size.value === undefined ? undefined : start + size.value };
}

/** Reads a variable-length integer (RFC 8794 4): its value, undefined if all bits are set, and its size in bytes. */
export function readVint(
  bytes: Uint8Array,
  at: number,
): { value: number | undefined; length: number } | undefined {
  const first = bytes[at];
  if (first === undefined || first === 0) return undefined;
  const length = Math.clz32(first) - 23;
  if (at + length > bytes.length) return undefined;
  let value = first & (0xff >> length);
  let allOnes = value === 0xff >> length;
  for (let i = 1; i < length; i++) {
    value = value * 256 + bytes[at + i]!;
    allOnes &&= bytes[at + i] === 0xff;
  }
  if (allOnes) return { value: undefined, length };
  return value > Number.MAX_SAFE_INTEGER ? undefined : { value, length };
}

/**
 * Calls `visit` for each child element in the bytes `[from, to)` until it returns false. Stops at a truncated element or one of
 * unknown size.
 */
export function eachEbmlChild(
  bytes: Uint8Array,
  from: number,
  to: number,
  visit: (id: number, start: number, end: number) => boolean | undefined,
): void {
  let at = from;
  while (at < to) {
    const head = readEbmlHead(bytes, at);
    if (!head || head.end === undefined || head.end > to) return;
    if (visit(head.id, head.start, head.end) === false) return;
    at = head.end;
  }
}

/** Reads an unsigned integer element of up to 8 bytes (RFC 8794 7.2). Throws {@link DecodeError} if it exceeds 2^53. */
export function ebmlUint(bytes: Uint8Array, start: number, end: number): number {
  if (end - start > 8) throw new DecodeError("EBML", start, "integer of more than 8 bytes");
  let value = 0;
  for (let at = start; at < end; at++) value = value * 256 + bytes[at]!;
  if (value > Number.MAX_SAFE_INTEGER) throw new DecodeError("EBML", start, "integer above 2^53");
  return value;
}

/** Reads a float element of 0, 4 or 8 bytes (RFC 8794 7.3). Throws {@link DecodeError} for other sizes. */
export function ebmlFloat(bytes: Uint8Array, start: number, end: number): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (end - start === 4) return view.getFloat32(start);
  if (end - start === 8) return view.getFloat64(start);
  if (end === start) return 0;
  throw new DecodeError("EBML", start, `float of ${end - start} bytes, expected 0, 4 or 8`);
}

/** Returns true if the bytes begin with an EBML header (Matroska, WebM). */
export function isEbml(bytes: Uint8Array): boolean {
  return bytes.length >= 4 && readU32(bytes, 0) === 0x1a45dfa3;
}

/** Returns the head of a Void element of `totalBytes` (at least 9, including the head), to blank out another element. */
export function voidHead(totalBytes: number): Uint8Array<ArrayBuffer> {
  const head = new Uint8Array(9);
  head[0] = 0xec;
  head[1] = 0x01;
  let size = totalBytes - 9;
  for (let at = 8; at > 1; at--) {
    head[at] = size % 256;
    size = Math.floor(size / 256);
  }
  return head;
}
