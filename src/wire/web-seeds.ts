import { parseHttpUrl } from "../base/http-url.ts";
import { decodeUtf8 } from "../base/utf8.ts";
import type { BencodeView } from "./bencode-view.ts";

/** A web server that has the content. */
export interface WebSeed {
  readonly url: string;
  /** `files`: the files as they are, by ranges (BEP 19); `pieces`: parts of pieces, by parameters (BEP 17). */
  readonly kind: "files" | "pieces";
}

/** Web seeds that are read from one transport file: more servers than that are no help to one player. */
export const MAX_WEB_SEEDS = 50;
const MAX_URL_BYTES = 8192;

/** The web seeds of a transport file (BEP 19 `url-list`, which may be one text; BEP 17 `httpseeds`), each once. What is no
 * http or https URL is left out: a broken entry must not cost the working ones. */
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
  // Names are often written as they are, spaces and all: the canonical form has them escaped.
  return parseHttpUrl(decodeUtf8(bytes).trim())?.href;
}
