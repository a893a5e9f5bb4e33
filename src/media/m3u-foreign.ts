import { DecodeError } from "../base/errors.ts";

/** As many bytes tell what a file is. */
export const M3U_HEAD_BYTES = 24;

/**
 * Refuses what is certainly no playlist by its first bytes, blank ones left out. Throws `DecodeError` that says what
 * came instead, since a server that wants a login or has lost the list answers with a page.
 */
export function refuseForeign(head: string): void {
  const what = foreignKind(head);
  if (what !== undefined) throw new DecodeError("playlist", 0, `expected a playlist, ${what} came`);
}

function foreignKind(head: string): string | undefined {
  if (/^<(\?xml|tv\b|playlist\b|mpd\b|rss\b)/i.test(head)) return "XML";
  if (head.startsWith("<")) return "a web page";
  if (/^\[playlist\]/i.test(head)) return "a list of the PLS format";
  if (/^[{[]/.test(head)) return "JSON";
  if (head.startsWith("\x1f\x8b")) return "compressed data";
  if (/^d\d{1,3}:/.test(head)) return "a transport file";
  if (/^(\xff\xfe|\xfe\xff)/.test(head)) return "a list in UTF-16 (UTF-8 and Latin-1 are read)";
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  if (/^(%PDF|PK\x03\x04|Rar!|7z\xbc|\x89PNG|\xff\xd8|GIF8|\x1aE\xdf\xa3|ID3|OggS)/.test(head))
    return "binary data";
  return undefined;
}

/** Whether a line can be an entry of a list that has no `#EXTM3U`: it begins as links do. Prose would be no entry. */
export function looksLikeLink(line: string): boolean {
  return /^(?:[a-z][a-z0-9+.-]{0,20}:\/\/\S|magnet:|acestream:|sluice:|[0-9a-f]{40}$)/i.test(line);
}
