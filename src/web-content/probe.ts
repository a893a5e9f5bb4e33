import { SluiceError } from "../base/errors.ts";
import { isPlayableName, mimeOf } from "../base/mime.ts";
import { percentDecode } from "../base/percent.ts";
import { decodeUtf8 } from "../base/utf8.ts";
import type { Outbound } from "../outbound/outbound.ts";
import type { OutboundStream } from "../outbound/request.ts";
import { sniffFormat } from "../remux/sniff.ts";
import type { WebContent } from "../transfer/contract.ts";
import { BodyBytes } from "./body-bytes.ts";
import { splitHeaders } from "./web-client.ts";

/** The result of a probe: media to be played from the URL, or bytes that should be a transport file. */
type Probed =
  | { readonly kind: "web"; readonly content: WebContent; readonly manifest?: FoundManifest | undefined }
  | {
      readonly kind: "bytes";
      readonly bytes: Uint8Array<ArrayBuffer>;
      /** True if URLs in the bytes may lead to private addresses: the request may, and the response came from one. */
      readonly allowPrivate: boolean;
    };

/** The manifest that an HLS URL returned. */
export interface FoundManifest {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** The base of its relative URIs. */
  readonly finalUrl: string;
  /** Whether its URIs may lead to private addresses. */
  readonly allowPrivate: boolean;
}

/** Limits of a probe. */
interface ProbeOptions {
  readonly allowPrivate: boolean;
  /** Headers that a playlist sets for the URL (`WebContent.headers`). */
  readonly headers?: WebContent["headers"];
  /** The size limit of a transport file, in bytes. */
  readonly limitBytes: number;
  /** If set, the manifest is read and returned, up to this many bytes. */
  readonly manifestLimitBytes?: number | undefined;
  /** For the whole probe. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** Enough for five packets of a transport stream, or for the comments readBytes the first tag of a playlist. */
const HEAD_BYTES = 4096;

/** Requests a URL and classifies it by the first bytes of the response, never by its name. Rejects with `SluiceError`. */
export async function probeUrl(
  outbound: Pick<Outbound, "open">,
  url: string,
  options: ProbeOptions,
): Promise<Probed> {
  const { allowPrivate, headers, limitBytes, timeoutMs, signal } = options;
  const { userAgent, originHeaders } = splitHeaders(headers);
  const answer = await outbound.open(url, {
    allowPrivate,
    timeoutMs,
    headTimeoutMs: timeoutMs,
    idleTimeoutMs: timeoutMs,
    // A 206 response shows that the server supports ranges. A compressed transport file is accepted as well.
    headers: { range: "bytes=0-", "accept-encoding": "identity", ...userAgent },
    originHeaders,
    // A film exceeds any limit; the reads below are limited.
    limitBytes: Number.POSITIVE_INFINITY,
    purpose: "content",
    signal,
  });
  const body = new BodyBytes(answer.body);
  try {
    if (answer.status !== 200 && answer.status !== 206)
      throw new SluiceError("url_unreachable", `the server answered ${answer.status}`);
    const head = await body.head(HEAD_BYTES);
    const facts = { url, ...(headers && { headers }), allowPrivate, ...(await classify(head, answer)) };
    if ("kind" in facts) {
      const { manifestLimitBytes } = options;
      if (facts.kind !== "hls" || manifestLimitBytes === undefined) return { kind: "web", content: facts };
      const { finalUrl } = answer;
      const bytes = await readWhole(body, manifestLimitBytes);
      const manifest = { bytes, finalUrl, allowPrivate: answer.allowPrivate ?? false };
      return { kind: "web", content: facts, manifest };
    }
    return {
      kind: "bytes",
      bytes: await readWhole(body, limitBytes),
      allowPrivate: answer.allowPrivate ?? false,
    };
  } finally {
    await body.cancel();
  }
}

/** Classifies a response by its first bytes; returns an empty object if it is no media. */
function classify(
  head: Uint8Array,
  { status, headers, finalUrl }: OutboundStream,
): Omit<WebContent, "url" | "headers" | "allowPrivate"> | Record<string, never> {
  const text = decodeUtf8(head)
    .replace(/^\ufeff/, "")
    .trimStart();
  const name = nameOf(finalUrl, headers);
  const contentType = headers.get("content-type")?.split(";")[0]?.trim().toLowerCase() ?? "";
  if (/^(?:#(?!EXT)[^\r\n]*[\r\n]\s*)*#EXTM3U/.test(text) && /^#EXT-X-/m.test(text))
    return { kind: "hls", name, mime: "application/vnd.apple.mpegurl", size: 0, validator: undefined };
  const isXml = text.startsWith("<") && /<(?:\w+:)?MPD[\s>]/.test(text);
  if (isXml || contentType === "application/dash+xml")
    throw new SluiceError("unsupported_content", "DASH manifests cannot be played; use an HLS manifest");
  const format = sniffFormat(head);
  if (!format) return {};
  const size = sizeOf(status, headers);
  const hasRanges = status === 206 || headers.get("accept-ranges")?.trim().toLowerCase() === "bytes";
  // Without ranges, a film with its index at the start can still be played in order; a seek fails with an error.
  if (size !== undefined && (hasRanges || format !== "mpegts")) {
    const mime = mimeOfFormat(format, name);
    return { kind: "file", name, mime, size, validator: validatorOf(headers) };
  }
  if (format === "mpegts") return { kind: "stream", name, mime: "video/mp2t", size: 0, validator: undefined };
  const what = "the server does not send the size of this file; without it, only MPEG-TS can be played";
  throw new SluiceError("unsupported_content", what);
}

/** Returns the size of the whole file in bytes, or undefined if the server does not send it. */
function sizeOf(status: number, headers: Headers): number | undefined {
  if (headers.has("content-encoding")) return undefined;
  const text =
    status === 206
      ? /^bytes 0-\d+\/(\d+)$/.exec(headers.get("content-range")?.trim() ?? "")?.[1]
      : headers.get("content-length");
  const size = Number(text ?? 0);
  return Number.isSafeInteger(size) && size > 0 ? size : undefined;
}

/** Returns the file name of `Content-Disposition`, else the last path segment, else the host. */
function nameOf(url: string, headers: Headers): string {
  const { pathname, hostname } = new URL(url);
  const quoted = /filename="([^"]{1,200})"/i.exec(headers.get("content-disposition") ?? "")?.[1];
  const last = pathname
    .split("/")
    .filter((part) => part !== "")
    .at(-1);
  const decoded = quoted ?? (last && decodeUtf8(percentDecode(last)));
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these characters are removed
  return (decoded ?? hostname).replace(/[\u0000-\u001f\u007f/\\]+/g, " ").slice(0, 200);
}

function mimeOfFormat(format: NonNullable<ReturnType<typeof sniffFormat>>, name: string): string {
  if (typeof format !== "string") return format.mime;
  if (isPlayableName(name)) return mimeOf(name);
  return format === "mp4" ? "video/mp4" : format === "matroska" ? "video/x-matroska" : "video/mp2t";
}

/** Returns a validator for `If-Range`: a strong ETag, else `Last-Modified` (RFC 9110 13.1.5). */
function validatorOf(headers: Headers): string | undefined {
  const tag = headers.get("etag")?.trim();
  if (tag && /^"[\x21\x23-\x7e\x80-\xff]*"$/.test(tag)) return tag;
  return headers.get("last-modified")?.trim() || undefined;
}

async function readWhole(body: BodyBytes, limitBytes: number): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = await body.whole(limitBytes);
  if (bytes) return bytes;
  const what = `expected media, or a transport file or manifest of at most ${limitBytes} bytes`;
  throw new SluiceError("url_refused", `${what}; the response is larger`);
}
