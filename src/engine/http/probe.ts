import { concatBytes } from "../../base/bytes.ts";
import { SluiceError } from "../../base/errors.ts";
import { isPlayableName, mimeOf } from "../../base/mime.ts";
import { percentDecode } from "../../base/percent.ts";
import { decodeUtf8 } from "../../base/utf8.ts";
import type { Outbound, OutboundStream } from "../../outbound/outbound.ts";
import { sniffContainer } from "../../remux/sniff.ts";
import type { WebContent } from "./web-content.ts";

/** What a URL leads to: media that is played from there, or bytes that should be a transport file. */
export type Probed =
  | { readonly kind: "web"; readonly content: WebContent; readonly manifest?: FoundManifest | undefined }
  | { readonly kind: "bytes"; readonly bytes: Uint8Array<ArrayBuffer> };

/** The manifest that an HLS URL was answered with. */
export interface FoundManifest {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** What it names is relative to this. */
  readonly finalUrl: string;
  /** Whether what it names may lead home. */
  readonly allowPrivate: boolean;
}

/** How a URL is looked at. */
export interface ProbeOptions {
  readonly allowPrivate: boolean;
  /** The longest transport file, in bytes. */
  readonly limitBytes: number;
  /** Where the manifest itself is wanted too: how long it may be, in bytes. */
  readonly manifestLimitBytes?: number | undefined;
  /** For all of it. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** Enough for five packets of a transport stream, and for what stands in front of the first tag of a playlist. */
const HEAD_BYTES = 4096;

/** Asks a URL and decides by what comes, never by its name, what it is. Rejects with `SluiceError`. */
export async function probeUrl(
  outbound: Pick<Outbound, "open">,
  url: string,
  options: ProbeOptions,
): Promise<Probed> {
  const { allowPrivate, limitBytes, timeoutMs, signal } = options;
  const answer = await outbound.open(url, {
    allowPrivate,
    timeoutMs,
    headTimeoutMs: timeoutMs,
    idleTimeoutMs: timeoutMs,
    // Who answers this with a range has ranges. A transport file that comes compressed all the same is welcome.
    headers: { range: "bytes=0-", "accept-encoding": "identity" },
    // A film is longer than any transport file: what is read of it is counted below.
    limitBytes: Number.POSITIVE_INFINITY,
    purpose: "content",
    signal,
  });
  const reader = answer.body.getReader();
  try {
    if (answer.status !== 200 && answer.status !== 206)
      throw new SluiceError("url_unreachable", `the server answered ${answer.status}`);
    const head = await readAtLeast(reader, HEAD_BYTES);
    const facts = { url, allowPrivate, ...(await whatItIs(head, answer)) };
    if ("kind" in facts) {
      const { manifestLimitBytes } = options;
      if (facts.kind !== "hls" || manifestLimitBytes === undefined) return { kind: "web", content: facts };
      const whole = concatBytes([head, await readRest(reader, head.length, manifestLimitBytes)]);
      const { finalUrl } = answer;
      const manifest = { bytes: whole, finalUrl, allowPrivate: answer.allowPrivate ?? false };
      return { kind: "web", content: facts, manifest };
    }
    const bytes = concatBytes([head, await readRest(reader, head.length, limitBytes)]);
    return { kind: "bytes", bytes };
  } finally {
    await reader.cancel().catch(() => {}); // What is left is not wanted.
  }
}

/** What is told of content by the first bytes of the answer; without a kind where it is none that is played from there. */
function whatItIs(
  head: Uint8Array,
  { status, headers, finalUrl }: OutboundStream,
): Omit<WebContent, "url" | "allowPrivate"> | Record<string, never> {
  const text = decodeUtf8(head)
    .replace(/^\ufeff/, "")
    .trimStart();
  const name = nameOf(finalUrl, headers);
  const said = headers.get("content-type")?.split(";")[0]?.trim().toLowerCase() ?? "";
  if (/^#EXTM3U/.test(text) && /^#EXT-X-/m.test(text))
    return { kind: "hls", name, mime: "application/vnd.apple.mpegurl", size: 0, validator: undefined };
  const isXml = text.startsWith("<") && /<(?:\w+:)?MPD[\s>]/.test(text);
  if (isXml || said === "application/dash+xml")
    throw new SluiceError("unsupported_content", "DASH manifests are not played; give an HLS manifest");
  const container = sniffContainer(head);
  if (container.includes(" ")) return {};
  const size = sizeOf(status, headers);
  const hasRanges = status === 206 || headers.get("accept-ranges")?.trim().toLowerCase() === "bytes";
  // Without ranges a film whose index comes first may still play in order; who wants more of it is told.
  if (size !== undefined && (hasRanges || container !== "mpegts")) {
    const mime = mimeOfContainer(container, name);
    return { kind: "file", name, mime, size, validator: validatorOf(headers) };
  }
  if (container === "mpegts")
    return { kind: "stream", name, mime: "video/mp2t", size: 0, validator: undefined };
  const lack = "the server does not say how long this file is";
  throw new SluiceError("unsupported_content", `${lack}: only MPEG-TS can be played so`);
}

/** The length of the whole file in bytes, where the server says so. */
function sizeOf(status: number, headers: Headers): number | undefined {
  if (headers.has("content-encoding")) return undefined;
  const told =
    status === 206
      ? /^bytes 0-\d+\/(\d+)$/.exec(headers.get("content-range")?.trim() ?? "")?.[1]
      : headers.get("content-length");
  const size = Number(told ?? 0);
  return Number.isSafeInteger(size) && size > 0 ? size : undefined;
}

/** The last part of the path, where it says anything; else the host. */
function nameOf(url: string, headers: Headers): string {
  const { pathname, hostname } = new URL(url);
  const quoted = /filename="([^"]{1,200})"/i.exec(headers.get("content-disposition") ?? "")?.[1];
  const last = pathname
    .split("/")
    .filter((part) => part !== "")
    .at(-1);
  const decoded = quoted ?? (last && decodeUtf8(percentDecode(last)));
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out
  return (decoded ?? hostname).replace(/[\u0000-\u001f\u007f/\\]+/g, " ").slice(0, 200);
}

function mimeOfContainer(container: string, name: string): string {
  if (isPlayableName(name)) return mimeOf(name);
  return container === "mp4" ? "video/mp4" : container === "matroska" ? "video/x-matroska" : "video/mp2t";
}

/** Only strong tags and dates can guard a range (RFC 9110 13.1.5). */
function validatorOf(headers: Headers): string | undefined {
  const tag = headers.get("etag")?.trim();
  if (tag && /^"[\x21\x23-\x7e\x80-\xff]*"$/.test(tag)) return tag;
  return headers.get("last-modified")?.trim() || undefined;
}

async function readAtLeast(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  wantedBytes: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const parts: Uint8Array[] = [];
  for (let length = 0; length < wantedBytes; ) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    length += value.length;
  }
  return concatBytes(parts);
}

async function readRest(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  before: number,
  limitBytes: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const parts: Uint8Array[] = [];
  for (let length = before; length <= limitBytes; ) {
    const { done, value } = await reader.read();
    if (done) return concatBytes(parts);
    length += value.length;
    parts.push(value);
  }
  const what = `expected media, or a transport file or manifest of at most ${limitBytes} bytes`;
  throw new SluiceError("url_refused", `${what}; something larger came`);
}
