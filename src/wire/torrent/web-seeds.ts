import { parseHttpUrl } from "../../base/http-url.ts";
import { decodeUtf8 } from "../../base/utf8.ts";
import type { BencodeView } from "../bencode-view.ts";

/** A web server that offers the content. */
export interface WebSeed {
  readonly url: string;
  /** `files` serves plain files with range requests (BEP 19); `pieces` serves parts of pieces by query parameters (BEP 17). */
  readonly kind: "files" | "pieces";
}

/** Maximum number of web seeds read from one transport file; more servers do not help one player. */
export const MAX_WEB_SEEDS = 50;
const MAX_URL_BYTES = 8192;

/** Reads the web seeds of a transport file (BEP 19 `url-list`, a list or one string; BEP 17 `httpseeds`), without duplicates.
 * Entries that are not http or https URLs are skipped. */
export function readWebSeeds(file: BencodeView): WebSeed[] {
  const seeds = new Map<string, WebSeed>();
  for (const [key, kind] of [
    ["url-list", "files"],
    ["httpseeds", "pieces"],
  ] as const) {
    const value = file.get(key);
    for (const entry of value?.isList ? value.items() : value ? [value] : []) {
      const url = readUrl(entry.bytes());
      if (url !== undefined && !seeds.has(url) && seeds.size < MAX_WEB_SEEDS) seeds.set(url, { url, kind });
    }
  }
  return [...seeds.values()];
}

function readUrl(bytes: Uint8Array | undefined): string | undefined {
  if (!bytes || bytes.length > MAX_URL_BYTES) return undefined;
  // URLs often contain unescaped spaces; the canonical form escapes them.
  return parseHttpUrl(decodeUtf8(bytes).trim())?.href;
}
