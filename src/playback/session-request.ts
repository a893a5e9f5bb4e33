import { LatestFew } from "../async/latest-few.ts";
import { SluiceError } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import { languageCode } from "../media/language.ts";
import { audioKey } from "../remux/contract.ts";
import type { Hold, Transfer, WebContent } from "../transfer/contract.ts";
import {
  type ManifestUrls,
  type SegmentSource,
  SHARED_MANIFEST_URLS,
  sessionManifestUrls,
} from "../transfer/segment-source.ts";
import { audioOf, type PlaybackRequest } from "./contract.ts";

/** Two starts of one player on one file join the same session if they have the same variant. */
export function variantOf(request: PlaybackRequest): string {
  const { output, container, maxHeight = "", variantIndex = -1 } = request;
  return `${output} ${container} ${audioKey(audioOf(request))} ${maxHeight} ${variantIndex}`;
}

/** Returns true for a live stream of a swarm and for a channel; whether content of a web server is live is known when it is open. */
export function isKnownLive({ live, channel }: Pick<Transfer, "live" | "channel">): boolean {
  return live !== undefined || channel !== undefined;
}

/** Players that share a session send more requests than one player, but never more than the engine has connections. */
const SHARED_REQUESTS_LIMIT = 65_536;

/** Returns what limits the pending segment requests of a session. */
export function pendingRequests({ isShared }: PlaybackRequest): LatestFew {
  return isShared ? new LatestFew(SHARED_REQUESTS_LIMIT) : new LatestFew();
}

/** The parts of a session's URLs. */
interface SessionName {
  readonly request: PlaybackRequest;
  readonly infohash: Infohash;
  readonly key: string;
  /** Undefined for 0. */
  readonly ordinal: number | undefined;
}

/** Returns the URLs in the manifests of a session. `base` is `http://host:port`. */
export function manifestUrls(
  { request, infohash, key, ordinal = 0 }: SessionName,
  base: string,
): ManifestUrls {
  return request.isShared ? SHARED_MANIFEST_URLS : sessionManifestUrls(base, { infohash, key, ordinal });
}

/** Returns the output for content of this kind. While the kind is unknown, the output is that of the endpoint. */
export function outputOf(
  { output, outputFormats }: PlaybackRequest,
  { transfer }: Hold,
  web: WebContent["kind"] | undefined,
): "ts" | "hls" {
  const isLive = isKnownLive(transfer) || web === "stream" || web === "hls";
  if (outputFormats === undefined || (!isLive && web === undefined && transfer.files.length === 0))
    return output;
  const format = isLive ? outputFormats.live : outputFormats.vod;
  if (format === "auto") return output;
  return format === "hls" || (format === "original" && web === "hls") ? "hls" : "ts";
}

/**
 * CHOICE(set-stream): `set_stream` continues in another variant of an HLS stream at the same segment number. Throws
 * `bad_parameter` if `source` has no such variant, or if its segments need an initialization section, which players keep.
 */
export function checkStream(source: SegmentSource | undefined, index: number): void {
  const { variants = [], container } = source ?? {};
  if (!source) throw cannotSet("the stream has not started yet");
  if (variants.length < 2) throw cannotSet("this content has only one stream");
  if (index >= variants.length)
    throw cannotSet(`expected stream_index up to ${variants.length - 1}, got ${index}`);
  if (container === "fmp4")
    throw cannotSet("start again with stream_id, because the segments are fragmented MP4");
}

function cannotSet(why: string): SluiceError {
  return new SluiceError("bad_parameter", `set_stream: ${why}`);
}

/** Returns one code per language, so that `ru` and `rus` share segments. */
export function knownLanguage(tag: string | undefined): string | undefined {
  const code = languageCode(tag);
  return code === "und" ? undefined : code;
}
