/** One NAL unit inside a frame: bytes `start` to `end`, without its start code or length. */
export interface NalRange {
  readonly start: number;
  readonly end: number;
}

/** Where the next start code `00 00 01` begins at or after `at`, or −1. Hops by `indexOf`, so it runs at memory speed. */
export function findStartCode(bytes: Uint8Array, at: number): number {
  let one = at + 2;
  for (;;) {
    one = bytes.indexOf(1, one);
    if (one < 0) return -1;
    if (bytes[one - 1] === 0 && bytes[one - 2] === 0) return one - 2;
    one++;
  }
}

/** The NAL units of an Annex B byte stream (ISO 14496-10 Annex B), at most `limit` of them. */
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

/** The payload without its emulation prevention bytes (ISO 14496-10 7.4.1): each `00 00 03` loses its 3. */
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

/** The units, each with a four-byte start code, one after another. */
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
