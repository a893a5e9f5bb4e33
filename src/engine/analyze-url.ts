import { latin1Text } from "../base/bytes.ts";
import { DecodeError, SluiceError } from "../base/errors.ts";
import { isPlayableName } from "../base/mime.ts";
import { decodeUtf8 } from "../base/utf8.ts";
import { M3uReader } from "../media/m3u.ts";
import { sniffContainer } from "../remux/sniff.ts";
import { MAX_TRANSPORT_FILE_BYTES } from "../wire/metainfo.ts";
import { type WebAnswer, WebLook, type WebLookParts } from "./analyze-answer.ts";
import { hlsNature } from "./analyze-hls.ts";
import { plainTitle, urlTitle } from "./analyze-title.ts";
import type { Analysis, InspectOptions } from "./contract.ts";
import { type KnownFile, titleOf } from "./known-file.ts";

/** What looking at URLs takes. */
export interface UrlAnalysisParts extends WebLookParts {
  /** Reads a transport file; rejects with `bad_transport_file`. */
  readonly readTransportFile: (bytes: Uint8Array) => Promise<KnownFile>;
}

/** What a URL leads to, without its title being settled. */
export type UrlAnalysis = Omit<Analysis, "itemUrl">;

/** Enough for five packets of a transport stream, and for what stands in front of the first tag that tells. */
const HEAD_BYTES = 4096;
/** So much of a list is read to see its first entry. */
const LIST_HEAD_BYTES = 64 * 1024;

/** Asks a URL what it is, by the first bytes of the answer before what the server calls them. Rejects with `SluiceError`. */
export function analyzeUrl(
  parts: UrlAnalysisParts,
  url: string,
  options: InspectOptions,
): Promise<UrlAnalysis> {
  const look = new WebLook(parts, options);
  return look.at(url, "content", async (answer) => {
    const head = await answer.head(HEAD_BYTES);
    const text = decodeUtf8(head.subarray(0, HEAD_BYTES))
      .replace(/^\ufeff/, "")
      .trimStart();
    if (/^d\d{1,3}:/.test(text)) return transportFile(parts, answer);
    if (text.startsWith("#EXT") || /mpegurl/.test(answer.mime)) return list(look, answer, url);
    if (text.startsWith("<") && /<(?:\w+:)?MPD[\s>]/.test(text)) return dash(text, url);
    return media(head, answer, url) ?? refuse(text, answer);
  });
}

async function transportFile(parts: UrlAnalysisParts, answer: WebAnswer): Promise<UrlAnalysis> {
  const known = await parts.readTransportFile(await answer.whole(MAX_TRANSPORT_FILE_BYTES));
  const { infohash, contentId } = known.file;
  return {
    contentType: "transport_file",
    transportType: "bt",
    infohash,
    contentId,
    title: titleOf(known),
    ...natureOfFile(known),
  };
}

/** What a transport file says of itself for lists: live or not, and what its maker counts it among. */
export function natureOfFile(known: KnownFile | undefined): Pick<Analysis, "isLive" | "categories"> {
  if (!known) return { isLive: -1, categories: [] };
  return known.kind === "live"
    ? { isLive: 1, categories: known.file.meta.categories ?? [] }
    : { isLive: 0, categories: [] };
}

async function list(look: WebLook, answer: WebAnswer, url: string): Promise<UrlAnalysis> {
  if (isHls(await answer.head(LIST_HEAD_BYTES)))
    return { ...ofWeb(url), ...(await hlsNature(look, answer)), transportType: "hls" };
  return { ...ofWeb(url), contentType: "playlist", isLive: -1 };
}

/** Whether a list is the manifest of one stream; rejects with `not_a_playlist`. */
function isHls(head: Uint8Array): boolean {
  const reader = new M3uReader();
  try {
    reader.push(head.subarray(0, LIST_HEAD_BYTES));
    // A list that is longer than its head may have a last line that is cut in two: it must not be judged.
    if (head.length < LIST_HEAD_BYTES) reader.end();
  } catch (thrown) {
    if (!(thrown instanceof DecodeError)) throw thrown;
    throw new SluiceError("not_a_playlist", thrown.message, { cause: thrown });
  }
  return reader.kind === "hls";
}

/** DASH is not played, yet its links are kept in playlists: what can be told of them is. */
function dash(text: string, url: string): UrlAnalysis {
  const isLive = /\btype\s*=\s*["']dynamic["']/.test(text);
  return { ...ofWeb(url), contentType: isLive ? "direct_stream" : "direct_content", isLive: isLive ? 1 : 0 };
}

/** Film, sound or stream; undefined for what is none of them. */
function media(head: Uint8Array, answer: WebAnswer, url: string): UrlAnalysis | undefined {
  const container = sniffContainer(head);
  const isRead = !container.includes(" ");
  const isText = /^\s*[<{[]/.test(latin1Text(head.subarray(0, 64)));
  const isSaid = /^(?:video|audio)\//.test(answer.mime) || /^application\/(?:ogg|mp4)$/.test(answer.mime);
  const isNamed =
    /^(?:|application\/octet-stream|binary\/octet-stream)$/.test(answer.mime) && isPlayableName(path(url));
  if (head.length === 0 || !(isRead || (!isText && (isSaid || isNamed)))) return undefined;
  const station = answer.headers.get("icy-name") ?? "";
  if (answer.size !== undefined && station === "")
    return { ...ofWeb(url), contentType: "direct_content", isLive: 0 };
  // Files whose server does not say how long they are; everything else without an end is made while it is sent.
  const isFile = container === "mp4" || container === "matroska";
  const title = plainTitle(station) || ofWeb(url).title;
  return { ...ofWeb(url), title, contentType: "direct_stream", isLive: isFile ? -1 : 1 };
}

function refuse(text: string, { mime }: WebAnswer): never {
  const what =
    text === "" ? "nothing" : text.startsWith("<") ? "a web page" : `${mime || "something unknown"}`;
  throw new SluiceError(
    "unsupported_content",
    `expected a transport file, a playlist, a manifest or media, ${plainTitle(what).slice(0, 80)} came`,
  );
}

/** What everything that comes from a web server has in common. */
function ofWeb(url: string) {
  return {
    transportType: "hls",
    infohash: null,
    contentId: null,
    title: urlTitle(url),
    categories: [],
  } as const;
}

function path(url: string): string {
  return new URL(url).pathname;
}
