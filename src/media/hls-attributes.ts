import type { ByteRange } from "../base/range.ts";

/** The attribute list of a tag (RFC 8216 4.2): names as they are, values without their quotes. */
export type HlsAttributes = ReadonlyMap<string, string>;

/** Further attributes of one tag are not read; the RFC knows about twenty. */
const MAX_ATTRIBUTES = 64;

/** Reads an attribute list. What breaks it ends it; of a repeated name the first counts. */
export function readHlsAttributes(text: string): HlsAttributes {
  const attributes = new Map<string, string>();
  const one = /\s*([\w-]+)\s*=\s*("[^"]*"|[^,]*)\s*(?:,|$)/y;
  while (attributes.size < MAX_ATTRIBUTES) {
    const match = one.exec(text);
    if (!match) break;
    const [, name, value] = match;
    if (!attributes.has(name!)) attributes.set(name!, value!.replace(/^"|"$/g, "").trim());
  }
  return attributes;
}

/** A whole or decimal number that is not negative; undefined where it is none, or larger than anything means. */
export function hlsNumber(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,15}(?:\.\d{0,20})?$/.test(text.trim()) ? Number(text) : undefined;
}

/** `<length>[@<offset>]` as a range; `start` where no offset is said. Undefined where it is none. */
export function hlsByteRange(text: string, start: number | undefined): ByteRange | undefined {
  const match = /^(\d{1,15})(?:@(\d{1,15}))?$/.exec(text.trim());
  const from = match?.[2] === undefined ? start : Number(match[2]);
  return match && from !== undefined ? { start: from, end: from + Number(match[1]) } : undefined;
}

/** `#EXT-X-PROGRAM-DATE-TIME` (ISO 8601) in milliseconds since 1970; UTC where no zone is said. */
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
