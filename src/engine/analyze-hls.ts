import { SluiceError } from "../base/errors.ts";
import { type HlsMedia, isLiveHls } from "../media/hls-media.ts";
import { readManifest, resolveLocation } from "../web-content/hls-fetch.ts";
import { chooseVariant } from "../web-content/hls-variant.ts";
import type { FoundManifest } from "../web-content/probe.ts";
import type { WebAnswer, WebLookup } from "./web-lookup.ts";

/** A manifest of 24 hours has about 2 MB. Any client can request an analysis, and parsing blocks other requests. */
export const MANIFEST_LIMIT_BYTES = 4 * 1024 * 1024;

/** The kind of content of an HLS manifest; `isLive` is 1 if segments are still added. */
interface HlsNature {
  readonly contentType: "hls" | "hls_vode";
  readonly isLive: 0 | 1;
}

/** Reads the manifest in a response and returns its kind of content. Rejects with `SluiceError`. */
export async function hlsNature(lookup: WebLookup, answer: WebAnswer): Promise<HlsNature> {
  const bytes = await answer.whole(MANIFEST_LIMIT_BYTES);
  return natureOf(lookup, { ...answer, bytes });
}

/**
 * Returns the kind of content of a manifest. For a master manifest, requests the variant that would be played. Rejects
 * with `SluiceError`.
 *
 * CHOICE(hls-vode): `hls_vode` is content whose start stays available: a film, or a broadcast that keeps all segments
 * (`EVENT`). `hls` is a sliding window.
 */
export async function natureOf(
  lookup: WebLookup,
  { bytes, finalUrl, allowPrivate }: Pick<FoundManifest, "finalUrl" | "allowPrivate"> & { bytes: Uint8Array },
): Promise<HlsNature> {
  const first = readManifest(bytes, "unsupported_content", { url: finalUrl });
  if (first.kind === "media") return mediaNature(first);
  const { uri } = first.variants[chooseVariant(first)]!;
  const location = resolveLocation(uri, { url: finalUrl, allowPrivate });
  const read = async (variant: WebAnswer) =>
    readManifest(await variant.whole(MANIFEST_LIMIT_BYTES), "unsupported_content", {
      url: variant.finalUrl,
      imported: first.variables,
    });
  const media = await lookup.request(location.url, "HLS manifest", read, location);
  if (media.kind === "media") return mediaNature(media);
  throw new SluiceError("unsupported_content", "this HLS master manifest refers to another master manifest");
}

function mediaNature(media: HlsMedia): HlsNature {
  const hasStart = media.isEnded || media.type !== undefined;
  return { contentType: hasStart ? "hls_vode" : "hls", isLive: isLiveHls(media) ? 1 : 0 };
}
