import { concatBytes } from "../../base/bytes.ts";
import { DecodeError, SluiceError } from "../../base/errors.ts";
import type { ByteRange } from "../../base/range.ts";
import { decodeUtf8 } from "../../base/utf8.ts";
import type { HlsMaster } from "../../media/hls-master.ts";
import type { HlsMedia } from "../../media/hls-media.ts";
import { parseHlsPlaylist } from "../../media/hls-playlist.ts";
import { mayRecover, type WebClient, wrongStatus } from "./web-client.ts";

/** Manifests of a whole day, with long signed URLs. */
const MANIFEST_LIMIT_BYTES = 8 * 1024 * 1024;
const MANIFEST_TIMEOUT_MS = 20_000;

/** A URL that a manifest names, and whether it may lead home. */
export interface HlsPlace {
  readonly url: string;
  readonly allowPrivate: boolean;
}

/** A manifest, and where it came from: what it names is relative to that. */
export interface FetchedManifest {
  readonly playlist: HlsMaster | HlsMedia;
  readonly place: HlsPlace;
}

/** Fetches and reads a manifest. Rejects with `SluiceError`. */
export async function fetchManifest(
  client: WebClient,
  { url, allowPrivate }: HlsPlace,
  signal: AbortSignal,
): Promise<FetchedManifest> {
  const answer = await client.open(url, {
    allowPrivate,
    limitBytes: MANIFEST_LIMIT_BYTES,
    timeoutMs: MANIFEST_TIMEOUT_MS,
    purpose: "HLS manifest",
    signal,
  });
  const bytes = await wholeOf(answer.body);
  if (answer.status !== 200) throw wrongStatus(answer.status, "the HLS manifest");
  const playlist = readManifest(bytes, "broken_media");
  return { playlist, place: { url: answer.finalUrl, allowPrivate: answer.allowPrivate ?? false } };
}

/** Reads a manifest; throws `SluiceError` with this code where it is none. */
export function readManifest(
  bytes: Uint8Array,
  code: "broken_media" | "unsupported_content",
): HlsMaster | HlsMedia {
  try {
    return parseHlsPlaylist(decodeUtf8(bytes));
  } catch (thrown) {
    if (!(thrown instanceof DecodeError)) throw thrown;
    throw new SluiceError(code, thrown.message, { cause: thrown });
  }
}

/** Fetches a part that a manifest names: a segment, a key, an initialisation. One that breaks is asked for once more. */
export async function fetchPart(
  client: WebClient,
  place: HlsPlace,
  range: ByteRange | undefined,
  limitBytes: number,
  signal: AbortSignal,
): Promise<Uint8Array<ArrayBuffer>> {
  try {
    return await fetchOnce(client, place, range, limitBytes, signal);
  } catch (thrown) {
    if (signal.aborted || !mayRecover(thrown)) throw thrown;
    return fetchOnce(client, place, range, limitBytes, signal);
  }
}

async function fetchOnce(
  client: WebClient,
  { url, allowPrivate }: HlsPlace,
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
  const bytes = await wholeOf(answer.body);
  const { status } = answer;
  if (status !== 200 && status !== 206) throw wrongStatus(status, "a part of the stream");
  // A server without ranges sends all of it.
  const part = range && status === 200 ? bytes.slice(range.start, range.end) : bytes;
  if (range && part.length !== range.end - range.start)
    throw new SluiceError("url_unreachable", "the server sent another range than was asked for");
  return part;
}

/** Where a URI of a manifest leads; throws `url_refused` where it is no URL. */
export function placeOf(uri: string, manifest: HlsPlace): HlsPlace {
  if (!URL.canParse(uri, manifest.url))
    throw new SluiceError("url_refused", "the HLS manifest names something that is no URL");
  return { url: new URL(uri, manifest.url).href, allowPrivate: manifest.allowPrivate };
}

async function wholeOf(body: ReadableStream<Uint8Array>): Promise<Uint8Array<ArrayBuffer>> {
  const reader = body.getReader();
  const parts: Uint8Array[] = [];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return concatBytes(parts);
    parts.push(value);
  }
}
