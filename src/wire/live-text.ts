import { decodeUtf8 } from "../base/utf8.ts";
import { isTrackerUrl } from "./tracker-url.ts";

/** A text of a stranger as it may be shown: in one line, without characters that would move a cursor or turn the text
 * around, at most `mostLength` units long. What has been made so stays so. */
export function displayText(bytes: Uint8Array, mostLength: number): string {
  return (
    decodeUtf8(bytes.subarray(0, 4 * mostLength))
      .replace(/\s+/g, " ")
      .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}]/gu, "")
      .replace(/ {2,}/g, " ")
      .trim()
      .slice(0, mostLength)
      // Half a pair at the cut, and the space before it.
      .replace(/[\ud800-\udbff]$/, "")
      .trimEnd()
  );
}

/** Whether a URL is that of a tracker, and can be written byte for byte as it is read. */
export function isWritableTracker(url: string): boolean {
  return isTrackerUrl(url) && !/[^\0-\xff]/.test(url);
}
