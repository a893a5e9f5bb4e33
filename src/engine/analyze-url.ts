import { latin1Text } from "../base/bytes.ts";
import { DecodeError, SluiceError } from "../base/errors.ts";
import { contentIdOf } from "../base/ids.ts";
import { isPlayableName } from "../base/mime.ts";
import { percentDecode } from "../base/percent.ts";
import { decodeUtf8 } from "../base/utf8.ts";
import { M3uReader } from "../media/m3u.ts";
import { sniffFormat } from "../remux/sniff.ts";
import { type KnownFile, titleOf } from "../storage/known-file.ts";
import type { Analysis, InspectOptions } from "../transfer/contract.ts";
import { MAX_TRANSPORT_FILE_BYTES } from "../wire/torrent/metainfo.ts";
import { hlsNature } from "./analyze-hls.ts";
import { type WebAnswer, WebLookup, type WebLookupDependencies } from "./web-lookup.ts";

/** Dependencies of `analyzeUrl`. */
export interface UrlAnalysisDependencies extends WebLookupDependencies {
  /** Parses a transport file. Rejects with `bad_transport_file`. */
  readonly readTransportFile: (bytes: Uint8Array) => Promise<KnownFile>;
}

/** The analysis of a URL, before a title from the caller replaces its own. */
type UrlAnalysis = Omit<Analysis, "itemUrl">;

/** Enough for five packets of a transport stream, or for the comments before the first decisive tag of a playlist. */
const HEAD_BYTES = 4096;
/** Bytes read of a playlist, enough to reach its first entry. */
const LIST_HEAD_BYTES = 64 * 1024;
/** In characters: longer titles cannot be displayed. */
const MAX_TITLE_LENGTH = 300;
/** Generic file names of scripts and manifests, which are no titles. */
const GENERIC_NAME =
  /^(?:index|playlist|master|manifest|stream|live|chunklist|mono|video|get|file|download)$/i;
const EXTENSION = /\.(?:[a-z][a-z0-9]{1,4}|3gp|7z|mp[34])$/i;

/** Requests a URL and classifies the response. Its first bytes take precedence over its MIME type. Rejects with `SluiceError`. */
export function analyzeUrl(
  deps: UrlAnalysisDependencies,
  url: string,
  options: InspectOptions,
): Promise<UrlAnalysis> {
  const lookup = new WebLookup(deps, options);
  return lookup.request(url, "content", async (answer) => {
    const head = await answer.head(HEAD_BYTES);
    const text = decodeUtf8(head.subarray(0, HEAD_BYTES))
      .replace(/^\ufeff/, "")
      .trimStart();
    if (/^d\d{1,3}:/.test(text)) return transportFile(deps, answer);
    if (text.startsWith("#EXT") || /mpegurl/.test(answer.mime)) return list(lookup, answer, url);
    if (text.startsWith("<") && /<(?:\w+:)?MPD[\s>]/.test(text)) return dash(text, url);
    return media(head, answer, url) ?? refuse(text, answer);
  });
}

async function transportFile(deps: UrlAnalysisDependencies, answer: WebAnswer): Promise<UrlAnalysis> {
  const known = await deps.readTransportFile(await answer.whole(MAX_TRANSPORT_FILE_BYTES));
  const { infohash } = known.file;
  return {
    contentType: "transport_file",
    transportType: "bt",
    infohash,
    contentId: contentIdOf(infohash),
    title: titleOf(known),
    ...natureOfFile(known),
  };
}

/** Returns whether a transport file describes a live stream, and its categories. */
export function natureOfFile(known: KnownFile | undefined): Pick<Analysis, "isLive" | "categories"> {
  if (!known) return { isLive: -1, categories: [] };
  return known.kind === "live"
    ? { isLive: 1, categories: known.file.meta.categories ?? [] }
    : { isLive: 0, categories: [] };
}

async function list(lookup: WebLookup, answer: WebAnswer, url: string): Promise<UrlAnalysis> {
  if (isHls(await answer.head(LIST_HEAD_BYTES)))
    return { ...ofWeb(url), ...(await hlsNature(lookup, answer)), transportType: "hls" };
  return { ...ofWeb(url), contentType: "playlist", isLive: -1 };
}

/** Returns true if a playlist is an HLS manifest. Throws `not_a_playlist`. */
function isHls(head: Uint8Array): boolean {
  const reader = new M3uReader();
  try {
    reader.push(head.subarray(0, LIST_HEAD_BYTES));
    // A longer playlist may end in an incomplete line here, which must not be parsed.
    if (head.length < LIST_HEAD_BYTES) reader.end();
  } catch (thrown) {
    if (!(thrown instanceof DecodeError)) throw thrown;
    throw new SluiceError("not_a_playlist", thrown.message, { cause: thrown });
  }
  return reader.kind === "hls";
}

/** DASH cannot be played, but playlists may contain such links. */
function dash(text: string, url: string): UrlAnalysis {
  const isLive = /\btype\s*=\s*["']dynamic["']/.test(text);
  return { ...ofWeb(url), contentType: isLive ? "direct_stream" : "direct_content", isLive: isLive ? 1 : 0 };
}

/** Classifies a media file or stream; undefined if the response is neither. */
function media(head: Uint8Array, answer: WebAnswer, url: string): UrlAnalysis | undefined {
  const format = sniffFormat(head);
  const isRecognized = format !== undefined;
  const isText = /^\s*[<{[]/.test(latin1Text(head.subarray(0, 64)));
  const hasMediaType =
    /^(?:video|audio)\//.test(answer.mime) || /^application\/(?:ogg|mp4)$/.test(answer.mime);
  const hasMediaName =
    /^(?:|application\/octet-stream|binary\/octet-stream)$/.test(answer.mime) && isPlayableName(pathOf(url));
  if (head.length === 0 || !(isRecognized || (!isText && (hasMediaType || hasMediaName)))) return undefined;
  const station = answer.headers.get("icy-name") ?? "";
  if (answer.size !== undefined && station === "")
    return { ...ofWeb(url), contentType: "direct_content", isLive: 0 };
  // The server may omit the size of a file; other media without a size is live.
  const isFile = isRecognized && format !== "mpegts";
  const title = plainTitle(station) || ofWeb(url).title;
  return { ...ofWeb(url), title, contentType: "direct_stream", isLive: isFile ? -1 : 1 };
}

function refuse(text: string, { mime }: WebAnswer): never {
  const what =
    text === ""
      ? "an empty response"
      : text.startsWith("<")
        ? "a web page"
        : `${mime || "something unknown"}`;
  throw new SluiceError(
    "unsupported_content",
    `expected a transport file, a playlist, a manifest or media, got ${plainTitle(what).slice(0, 80)}`,
  );
}

/** The fields that all web content has in common. */
function ofWeb(url: string) {
  return {
    transportType: "hls",
    infohash: null,
    contentId: null,
    title: urlTitle(url),
    categories: [],
  } as const;
}

function pathOf(url: string): string {
  return new URL(url).pathname;
}

/** Cleans an untrusted title: one line, no invisible characters, at most `MAX_TITLE_LENGTH`. */
export function plainTitle(text: string): string {
  const plain = text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, " ").trim();
  return plain.length <= MAX_TITLE_LENGTH
    ? plain
    : plain.slice(0, MAX_TITLE_LENGTH).replace(/[\ud800-\udbff]$/, "");
}

/** Derives a title from a URL: the file name without extension, else the folder, else the host. */
function urlTitle(text: string): string {
  const { pathname, hostname } = new URL(text);
  for (const part of pathname.split("/").reverse()) {
    const name = plainTitle(decodeUtf8(percentDecode(part)).replace(EXTENSION, ""));
    if (name !== "" && !GENERIC_NAME.test(name)) return name;
  }
  return hostname;
}
