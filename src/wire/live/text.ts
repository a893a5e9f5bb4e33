import { decodeUtf8 } from "../../base/utf8.ts";
import { isTrackerUrl } from "../tracker/url.ts";

/** Converts untrusted UTF-8 to one line of display text: no control or bidirectional characters, at most `maxLength` UTF-16 units.
 * Applying it twice gives the same text. */
export function displayText(bytes: Uint8Array, maxLength: number): string {
  return (
    decodeUtf8(bytes.subarray(0, 4 * maxLength))
      .replace(/\s+/g, " ")
      .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}]/gu, "")
      .replace(/ {2,}/g, " ")
      .trim()
      .slice(0, maxLength)
      // Remove half a surrogate pair at the cut, and a space before it.
      .replace(/[\ud800-\udbff]$/, "")
      .trimEnd()
  );
}

/** Returns true if a text is a tracker URL with only Latin-1 characters, which can be encoded one byte per character. */
export function isLatin1TrackerUrl(url: string): boolean {
  return isTrackerUrl(url) && !/[^\0-\xff]/.test(url);
}
