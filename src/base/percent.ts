import { latin1Text } from "./bytes.ts";
import { encodeUtf8 } from "./utf8.ts";

const UNRESERVED = /^[A-Za-z0-9._~-]$/;
const ESCAPED = Array.from({ length: 256 }, (_, byte) => {
  const character = String.fromCharCode(byte);
  return UNRESERVED.test(character) ? character : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
});

/** Percent-encodes every byte except unreserved characters (RFC 3986 2.3). */
export function percentEncode(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += ESCAPED[byte];
  return text;
}

/** Decodes percent-encoded text to bytes; a `%` without two hex digits stays as it is. */
export function percentDecode(text: string): Uint8Array {
  const raw = encodeUtf8(text);
  const bytes = new Uint8Array(raw.length);
  let length = 0;
  for (let at = 0; at < raw.length; at++) {
    const pair = raw[at] === 0x25 ? latin1Text(raw.subarray(at + 1, at + 3)) : "";
    if (/^[0-9a-fA-F]{2}$/.test(pair)) {
      bytes[length++] = Number.parseInt(pair, 16);
      at += 2;
    } else bytes[length++] = raw[at]!;
  }
  return bytes.subarray(0, length);
}
