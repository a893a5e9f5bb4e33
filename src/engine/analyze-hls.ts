import { DecodeError, SluiceError } from "../base/errors.ts";
import { decodeUtf8 } from "../base/utf8.ts";
import type { HlsMaster } from "../media/hls-master.ts";
import type { HlsMedia } from "../media/hls-media.ts";
import { parseHlsPlaylist } from "../media/hls-playlist.ts";
import type { WebAnswer, WebLook } from "./analyze-answer.ts";

/** The manifest of a day has about 2 MB. Reading one takes time from all others, and anybody may ask for it. */
const MANIFEST_LIMIT_BYTES = 4 * 1024 * 1024;

/** What a manifest is about: 0 what is whole, 1 what is being made. */
export interface HlsNature {
  readonly contentType: "hls" | "hls_vode";
  readonly isLive: 0 | 1;
}

/**
 * CHOICE(hls-vode): `hls_vode` is what has a beginning to go back to: a film, or a broadcast that keeps all of its
 * segments (`EVENT`); `hls` is a window that slides. A master manifest is what its first variant is.
 */
export async function hlsNature(look: WebLook, answer: WebAnswer): Promise<HlsNature> {
  const first = parsed(await answer.whole(MANIFEST_LIMIT_BYTES));
  if (first.kind === "media") return natureOf(first);
  const url = variantUrl(first.variants[0]!.uri, answer.finalUrl);
  const read = async (variant: WebAnswer) => parsed(await variant.whole(MANIFEST_LIMIT_BYTES));
  const media = await look.at(url, "HLS manifest", read, answer);
  if (media.kind === "media") return natureOf(media);
  throw new SluiceError("unsupported_content", "a master HLS manifest leads to another one");
}

function natureOf({ isEnded, type }: HlsMedia): HlsNature {
  return {
    contentType: isEnded || type !== undefined ? "hls_vode" : "hls",
    isLive: isEnded || type === "vod" ? 0 : 1,
  };
}

function parsed(bytes: Uint8Array): HlsMaster | HlsMedia {
  try {
    return parseHlsPlaylist(decodeUtf8(bytes));
  } catch (thrown) {
    if (!(thrown instanceof DecodeError)) throw thrown;
    throw new SluiceError("unsupported_content", thrown.message, { cause: thrown });
  }
}

function variantUrl(uri: string, base: string): string {
  if (URL.canParse(uri, base)) return new URL(uri, base).href;
  throw new SluiceError("unsupported_content", "an HLS manifest names a variant by what is no URL");
}
