const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/** Encodes `bytes` as lower-case hexadecimal digits. */
export function toHex(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += HEX[byte];
  return text;
}

/** Decodes hexadecimal digits of either case; undefined if `text` is not hexadecimal or has an odd length. */
export function fromHex(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (text.length % 2 !== 0 || !/^[0-9a-fA-F]*$/.test(text)) return undefined;
  const bytes = new Uint8Array(text.length / 2);
  for (let i = 0; i < bytes.length; i++) bytes[i] = Number.parseInt(text.slice(2 * i, 2 * i + 2), 16);
  return bytes;
}

/** Returns true if `a` and `b` hold the same bytes. Not constant-time. */
export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

/** Joins `parts` into one new array. */
export function concatBytes(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  let length = 0;
  for (const part of parts) length += part.length;
  const joined = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}

/** Reads a big-endian unsigned 16-bit number at `at`. The caller has checked the length. */
export function readU16(bytes: Uint8Array, at: number): number {
  return (bytes[at]! << 8) | bytes[at + 1]!;
}

/** Reads a big-endian unsigned 32-bit number at `at`. The caller has checked the length. */
export function readU32(bytes: Uint8Array, at: number): number {
  return ((bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!) >>> 0;
}

/** Reads a big-endian unsigned 48-bit number at `at`; exact, since 2^48 < 2^53. The caller has checked the length. */
export function readU48(bytes: Uint8Array, at: number): number {
  return readU16(bytes, at) * 0x1_0000_0000 + readU32(bytes, at + 2);
}

/** Writes a big-endian unsigned 16-bit number at `at`. */
export function writeU16(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value >>> 8;
  bytes[at + 1] = value;
}

/** Writes a big-endian unsigned 32-bit number at `at`. */
export function writeU32(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value >>> 24;
  bytes[at + 1] = value >>> 16;
  bytes[at + 2] = value >>> 8;
  bytes[at + 3] = value;
}

/** Writes a big-endian unsigned 48-bit number at `at`. */
export function writeU48(bytes: Uint8Array, at: number, value: number): void {
  writeU16(bytes, at, Math.floor(value / 0x1_0000_0000));
  writeU32(bytes, at + 2, value % 0x1_0000_0000);
}

/** Encodes ASCII or Latin-1 text, one byte per character. A character above 255 is a bug of the caller. */
export function latin1Bytes(text: string): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

/** Decodes each byte to one character; the inverse of {@link latin1Bytes}. */
export function latin1Text(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) {
    text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  }
  return text;
}
