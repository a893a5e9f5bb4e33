/** The bytes `[start, end)` of a NAL unit in a frame, without its start code or length field. */
interface NalRange {
  readonly start: number;
  readonly end: number;
}

/** Returns the offset of the next start code `00 00 01` at or after `at`, or −1. Uses `indexOf` for speed. */
export function findStartCode(bytes: Uint8Array, at: number): number {
  let one = at + 2;
  for (;;) {
    one = bytes.indexOf(1, one);
    if (one < 0) return -1;
    if (bytes[one - 1] === 0 && bytes[one - 2] === 0) return one - 2;
    one++;
  }
}

/** Finds the NAL units of a byte stream (ISO 14496-10 Annex B), at most `limit`. */
export function annexBNals(bytes: Uint8Array, limit = Number.POSITIVE_INFINITY): NalRange[] {
  const nals: NalRange[] = [];
  let code = findStartCode(bytes, 0);
  while (code >= 0 && nals.length < limit) {
    const start = code + 3;
    code = findStartCode(bytes, start);
    let end = code < 0 ? bytes.length : code;
    while (end > start && bytes[end - 1] === 0) end--;
    if (end > start) nals.push({ start, end });
  }
  return nals;
}

/** Removes the emulation prevention bytes (ISO 14496-10 7.4.1): the 3 of each `00 00 03`. */
export function unescapeNal(bytes: Uint8Array): Uint8Array {
  const clean = new Uint8Array(bytes.length);
  let length = 0;
  let zeros = 0;
  for (const byte of bytes) {
    if (zeros >= 2 && byte === 3) {
      zeros = 0;
      continue;
    }
    zeros = byte === 0 ? zeros + 1 : 0;
    clean[length++] = byte;
  }
  return clean.subarray(0, length);
}

/** Concatenates NAL units, each after a four-byte start code. */
export function withStartCodes(units: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  let length = 0;
  for (const unit of units) length += 4 + unit.length;
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const unit of units) {
    bytes[at + 3] = 1;
    bytes.set(unit, at + 4);
    at += 4 + unit.length;
  }
  return bytes;
}
