import { latin1Bytes, latin1Text } from "./bytes.ts";

/** UTF-16 units converted at once; well below the argument limit of every JavaScript engine. */
const CHUNK_UNITS = 4096;

/** Decodes UTF-8. Each maximal ill-formed subsequence becomes one U+FFFD, as in browsers (Unicode 3.9, Table 3-7). */
export function decodeUtf8(bytes: Uint8Array): string {
  if (isAscii(bytes)) return latin1Text(bytes);
  let text = "";
  let units: number[] = [];
  let at = 0;
  while (at < bytes.length) {
    const { codePoint, length } = readSequence(bytes, at);
    if (codePoint < 0x10000) units.push(codePoint);
    else units.push(0xd800 + ((codePoint - 0x10000) >> 10), 0xdc00 + (codePoint & 0x3ff));
    at += length;
    if (units.length >= CHUNK_UNITS) {
      text += String.fromCharCode(...units);
      units = [];
    }
  }
  return text + String.fromCharCode(...units);
}

/** Returns true if `bytes` is well-formed UTF-8. */
export function isUtf8(bytes: Uint8Array): boolean {
  for (let at = 0; at < bytes.length; ) {
    const { codePoint, length } = readSequence(bytes, at);
    // An encoded U+FFFD has three bytes; an ill-formed sequence with the same lead byte is shorter.
    if (codePoint === REPLACEMENT && !(length === 3 && bytes[at] === 0xef)) return false;
    at += length;
  }
  return true;
}

/** Encodes text as UTF-8; a lone surrogate becomes U+FFFD. */
export function encodeUtf8(text: string): Uint8Array<ArrayBuffer> {
  if (/^[\0-\x7f]*$/.test(text)) return latin1Bytes(text);
  const bytes = new Uint8Array(text.length * 3);
  let at = 0;
  for (const character of text) {
    let code = character.codePointAt(0)!;
    if (code >= 0xd800 && code < 0xe000) code = 0xfffd;
    if (code < 0x80) bytes[at++] = code;
    else if (code < 0x800) {
      bytes[at++] = 0xc0 | (code >> 6);
      bytes[at++] = 0x80 | (code & 0x3f);
    } else if (code < 0x10000) {
      bytes[at++] = 0xe0 | (code >> 12);
      bytes[at++] = 0x80 | ((code >> 6) & 0x3f);
      bytes[at++] = 0x80 | (code & 0x3f);
    } else {
      bytes[at++] = 0xf0 | (code >> 18);
      bytes[at++] = 0x80 | ((code >> 12) & 0x3f);
      bytes[at++] = 0x80 | ((code >> 6) & 0x3f);
      bytes[at++] = 0x80 | (code & 0x3f);
    }
  }
  return bytes.slice(0, at);
}

function isAscii(bytes: Uint8Array): boolean {
  for (let i = 0; i < bytes.length; i++) if (bytes[i]! > 0x7f) return false;
  return true;
}

const REPLACEMENT = 0xfffd;

function readSequence(bytes: Uint8Array, at: number): { codePoint: number; length: number } {
  const lead = bytes[at]!;
  if (lead < 0x80) return { codePoint: lead, length: 1 };
  const following =
    lead >= 0xc2 && lead < 0xe0 ? 1 : lead >= 0xe0 && lead < 0xf0 ? 2 : lead >= 0xf0 && lead < 0xf5 ? 3 : 0;
  if (following === 0) return { codePoint: REPLACEMENT, length: 1 };
  let codePoint = lead & (0x3f >> following);
  // The range of the second byte excludes overlong forms, surrogates and values above U+10FFFF.
  let low = lead === 0xe0 ? 0xa0 : lead === 0xf0 ? 0x90 : 0x80;
  let high = lead === 0xed ? 0x9f : lead === 0xf4 ? 0x8f : 0xbf;
  for (let i = 1; i <= following; i++) {
    const byte = bytes[at + i];
    if (byte === undefined || byte < low || byte > high) return { codePoint: REPLACEMENT, length: i };
    codePoint = (codePoint << 6) | (byte & 0x3f);
    low = 0x80;
    high = 0xbf;
  }
  return { codePoint, length: following + 1 };
}
