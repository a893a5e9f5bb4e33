import { languageCode } from "../media/language.ts";
import { audioKey } from "../remux/contract.ts";
import type { Hold, WebContent } from "../transfer/contract.ts";
import { audioOf, type PlaybackRequest } from "./contract.ts";

/** Two starts of one player on one file join the same session if they have the same variant. */
export function variantOf(request: PlaybackRequest): string {
  const { output, container, maxHeight = "", variantIndex = -1 } = request;
  return `${output} ${container} ${audioKey(audioOf(request))} ${maxHeight} ${variantIndex}`;
}

/** Returns the output for content of this kind. While the kind is unknown, the output is that of the endpoint. */
export function outputOf(
  { output, outputFormats }: PlaybackRequest,
  { transfer }: Hold,
  web: WebContent["kind"] | undefined,
): "ts" | "hls" {
  const isLive = transfer.live !== undefined || web === "stream" || web === "hls";
  if (outputFormats === undefined || (!isLive && web === undefined && transfer.files.length === 0))
    return output;
  const format = isLive ? outputFormats.live : outputFormats.vod;
  if (format === "auto") return output;
  return format === "hls" || (format === "original" && web === "hls") ? "hls" : "ts";
}

/** Returns one code per language, so that `ru` and `rus` share segments. */
export function knownLanguage(tag: string | undefined): string | undefined {
  const code = languageCode(tag);
  return code === "und" ? undefined : code;
}
