import { SluiceError } from "../base/errors.ts";
import { type HlsMedia, isLiveHls } from "../media/hls-media.ts";
import type { WebAnswer, WebLook } from "./analyze-answer.ts";
import { placeOf, readManifest } from "./http/hls-fetch.ts";
import { chooseVariant } from "./http/hls-variant.ts";
import type { FoundManifest } from "./http/probe.ts";

/** The manifest of a day has about 2 MB. Reading one takes time from all others, and anybody may ask for it. */
export const MANIFEST_LIMIT_BYTES = 4 * 1024 * 1024;

/** What a manifest is about: 0 what is whole, 1 what is being made. */
export interface HlsNature {
  readonly contentType: "hls" | "hls_vode";
  readonly isLive: 0 | 1;
}

/** What the manifest of this answer is about. Rejects with `SluiceError`. */
export async function hlsNature(look: WebLook, answer: WebAnswer): Promise<HlsNature> {
  const bytes = await answer.whole(MANIFEST_LIMIT_BYTES);
  return natureOf(look, { ...answer, bytes });
}

/**
 * CHOICE(hls-vode): `hls_vode` is what has a beginning to go back to: a film, or a broadcast that keeps all of its
 * segments (`EVENT`); `hls` is a window that slides. A master manifest is what the variant is that would be played.
 */
export async function natureOf(
  look: WebLook,
  { bytes, finalUrl, allowPrivate }: Pick<FoundManifest, "finalUrl" | "allowPrivate"> & { bytes: Uint8Array },
): Promise<HlsNature> {
  const first = readManifest(bytes, "unsupported_content");
  if (first.kind === "media") return told(first);
  const { uri } = first.variants[chooseVariant(first)]!;
  const place = placeOf(uri, { url: finalUrl, allowPrivate });
  const read = async (variant: WebAnswer) =>
    readManifest(await variant.whole(MANIFEST_LIMIT_BYTES), "unsupported_content");
  const media = await look.at(place.url, "HLS manifest", read, place);
  if (media.kind === "media") return told(media);
  throw new SluiceError("unsupported_content", "this HLS manifest leads to another list of variants");
}

function told(media: HlsMedia): HlsNature {
  const hasStart = media.isEnded || media.type !== undefined;
  return { contentType: hasStart ? "hls_vode" : "hls", isLive: isLiveHls(media) ? 1 : 0 };
}
