import type { ByteRange } from "../base/range.ts";

/** The attribute list of a tag (RFC 8216 4.2), values without their quotes. */
export type HlsAttributes = ReadonlyMap<string, string>;

/** Limit of attributes read from one tag; RFC 8216 defines about twenty. */
const MAX_ATTRIBUTES = 64;

/** Reads an attribute list up to the first syntax error. The first value of a repeated name is used. */
export function readHlsAttributes(text: string): HlsAttributes {
  const attributes = new Map<string, string>();
  const attribute = /\s*([\w-]+)\s*=\s*("[^"]*"|[^,]*)\s*(?:,|$)/y;
  while (attributes.size < MAX_ATTRIBUTES) {
    const match = attribute.exec(text);
    if (!match) break;
    const [, name, value] = match;
    if (!attributes.has(name!)) attributes.set(name!, value!.replace(/^"|"$/g, "").trim());
  }
  return attributes;
}

/** Reads a non-negative integer or decimal number; undefined if it is not one or has more than 15 digits. */
export function hlsNumber(text: string | undefined): number | undefined {
  return text !== undefined && /^(?:\d{1,15}(?:\.\d{0,20})?|\.\d{1,20})$/.test(text.trim())
    ? Number(text)
    : undefined;
}

/** Reads `<length>[@<offset>]` (RFC 8216 4.3.2.2); the offset defaults to `start`. Undefined if it is invalid. */
export function hlsByteRange(text: string, start: number | undefined): ByteRange | undefined {
  const match = /^(\d{1,15})(?:@(\d{1,15}))?$/.exec(text.trim());
  const from = match?.[2] === undefined ? start : Number(match[2]);
  return match && from !== undefined ? { start: from, end: from + Number(match[1]) } : undefined;
}

/** Reads `#EXT-X-PROGRAM-DATE-TIME` (ISO 8601) as UNIX milliseconds; UTC if it has no zone. Undefined if it is invalid. */
export function hlsTimeMs(text: string): number | undefined {
  const match =
    /^(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?\s*(?:Z|([+-])(\d\d):?(\d\d)?)?$/i.exec(
      text.trim(),
    );
  if (!match) return undefined;
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map((part) => Number(part ?? 0));
  const ms = Number(`0.${match[7] ?? 0}`) * 1000;
  const zoneMinutes = (Number(match[9] ?? 0) * 60 + Number(match[10] ?? 0)) * (match[8] === "-" ? -1 : 1);
  return Date.UTC(year!, month! - 1, day!, hour!, minute!, second!) + ms - zoneMinutes * 60_000;
}
