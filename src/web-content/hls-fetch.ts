import { concatBytes } from "../base/bytes.ts";
import { DecodeError, SluiceError } from "../base/errors.ts";
import type { ByteRange } from "../base/range.ts";
import { decodeUtf8 } from "../base/utf8.ts";
import type { HlsMaster } from "../media/hls-master.ts";
import type { HlsMedia } from "../media/hls-media.ts";
import { parseHlsPlaylist } from "../media/hls-playlist.ts";
import type { HlsValues, HlsVariableSources } from "../media/hls-variables.ts";
import { mayRecover, type WebClient, wrongStatus } from "./web-client.ts";

/** Enough for a manifest of 24 hours with long signed URLs. */
const MANIFEST_LIMIT_BYTES = 8 * 1024 * 1024;
const MANIFEST_TIMEOUT_MS = 20_000;

/** A URL in a manifest, and whether it may lead to private addresses. */
export interface HlsLocation {
  readonly url: string;
  readonly allowPrivate: boolean;
  /** The variables of the master manifest that names this URL. */
  readonly variables?: HlsValues;
}

/** A parsed manifest and its final URL, the base of its relative URIs. */
export interface FetchedManifest {
  readonly playlist: HlsMaster | HlsMedia;
  readonly location: HlsLocation;
}

/** Fetches and parses a manifest. Rejects with `SluiceError`. */
export async function fetchManifest(
  client: WebClient,
  { url, allowPrivate, variables: imported }: HlsLocation,
  signal: AbortSignal,
): Promise<FetchedManifest> {
  const answer = await client.open(url, {
    allowPrivate,
    limitBytes: MANIFEST_LIMIT_BYTES,
    timeoutMs: MANIFEST_TIMEOUT_MS,
    purpose: "HLS manifest",
    signal,
  });
  const bytes = await readAll(answer.body);
  if (answer.status !== 200) throw wrongStatus(answer.status, "the HLS manifest");
  const playlist = readManifest(bytes, "broken_media", { url: answer.finalUrl, imported });
  const variables = playlist.kind === "master" ? playlist.variables : imported;
  const location = { url: answer.finalUrl, allowPrivate: answer.allowPrivate ?? false };
  return { playlist, location: { ...location, ...(variables && { variables }) } };
}

/** Parses a manifest. Throws `SluiceError` with `code` if it is invalid. */
export function readManifest(
  bytes: Uint8Array,
  code: "broken_media" | "unsupported_content",
  sources: HlsVariableSources,
): HlsMaster | HlsMedia {
  try {
    return parseHlsPlaylist(decodeUtf8(bytes), sources);
  } catch (thrown) {
    if (!(thrown instanceof DecodeError)) throw thrown;
    throw new SluiceError(code, thrown.message, { cause: thrown });
  }
}

/**
 * Fetches a resource of a manifest: a segment, a key or an initialization section. Retries once after a recoverable error.
 *
 * @param range the bytes to fetch; undefined for all
 * @throws SluiceError if both attempts fail
 */
export async function fetchResource(
  client: WebClient,
  location: HlsLocation,
  range: ByteRange | undefined,
  limitBytes: number,
  signal: AbortSignal,
): Promise<Uint8Array<ArrayBuffer>> {
  try {
    return await fetchOnce(client, location, range, limitBytes, signal);
  } catch (thrown) {
    if (signal.aborted || !mayRecover(thrown)) throw thrown;
    return fetchOnce(client, location, range, limitBytes, signal);
  }
}

async function fetchOnce(
  client: WebClient,
  { url, allowPrivate }: HlsLocation,
  range: ByteRange | undefined,
  limitBytes: number,
  signal: AbortSignal,
): Promise<Uint8Array<ArrayBuffer>> {
  const purpose = "part of the stream";
  const answer = await client.open(url, {
    allowPrivate,
    limitBytes,
    purpose,
    signal,
    ...(range && { range }),
  });
  const bytes = await readAll(answer.body);
  const { status } = answer;
  if (status !== 200 && status !== 206) throw wrongStatus(status, "a part of the stream");
  // A server without range support sends the whole resource.
  const part = range && status === 200 ? bytes.slice(range.start, range.end) : bytes;
  if (range && part.length !== range.end - range.start)
    throw new SluiceError("url_unreachable", "the server sent a different range than requested");
  return part;
}

/** Resolves a URI of a manifest. Throws `url_refused` if the result is no valid URL. */
export function resolveLocation(uri: string, manifest: HlsLocation): HlsLocation {
  if (!URL.canParse(uri, manifest.url))
    throw new SluiceError("url_refused", "the HLS manifest contains an invalid URL");
  return { ...manifest, url: new URL(uri, manifest.url).href };
}

async function readAll(body: ReadableStream<Uint8Array>): Promise<Uint8Array<ArrayBuffer>> {
  const reader = body.getReader();
  const parts: Uint8Array[] = [];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return concatBytes(parts);
    parts.push(value);
  }
}
