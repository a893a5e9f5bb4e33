import { DecodeError } from "../base/errors.ts";
import { type HlsMaster, HlsMasterBuilder } from "./hls-master.ts";
import { type HlsMedia, HlsMediaBuilder } from "./hls-media.ts";

/** Characters. A day of two-second segments with long signed URLs comes close. */
const MAX_LENGTH = 16 * 1024 * 1024;
/** A longer URI is refused: no server takes it. */
const MAX_URI_LENGTH = 16 * 1024;
const FORMAT = "HLS manifest";

/**
 * Reads a manifest of other people's (RFC 8216): strict where a mistake would play wrong bytes, lenient about what is
 * missing and can be told otherwise; unknown tags are passed over (those of low latency, too: whole segments are in the
 * manifest besides). URIs are as they stand there, neither resolved nor checked. Throws `DecodeError`.
 */
export function parseHlsPlaylist(text: string): HlsMaster | HlsMedia {
  if (text.length > MAX_LENGTH)
    throw new DecodeError(FORMAT, MAX_LENGTH, `longer than ${MAX_LENGTH} characters`);
  if (!/^\ufeff?\s*#EXTM3U(?:\s|$)/.test(text)) throw new DecodeError(FORMAT, 0, "expected #EXTM3U");
  const master = new HlsMasterBuilder();
  const media = new HlsMediaBuilder();
  const lineEnd = text.includes("\n") ? "\n" : "\r";
  for (let at = 0, next = 0; at < text.length; at = next) {
    const end = text.indexOf(lineEnd, at);
    next = end < 0 ? text.length : end + 1;
    const line = text.slice(at, next).trim();
    if (line === "") continue;
    if (line.startsWith("#EXT")) {
      const colon = line.indexOf(":");
      const name = line.slice(1, colon < 0 ? undefined : colon).trimEnd();
      const value = colon < 0 ? "" : line.slice(colon + 1);
      master.tag(name, value);
      media.tag(name, value, at);
    } else if (!line.startsWith("#")) {
      if (line.length > MAX_URI_LENGTH)
        throw new DecodeError(FORMAT, at, `a URI longer than ${MAX_URI_LENGTH} characters`);
      if (master.awaitsUri) master.uri(line, at);
      else if (media.awaitsUri) media.uri(line, at);
      else throw new DecodeError(FORMAT, at, "a URI without #EXTINF or #EXT-X-STREAM-INF before it");
    }
  }
  const [asMaster, asMedia] = [master.finish(), media.finish()];
  if (asMaster.variants.length > 0 && asMedia.segments.length > 0)
    throw new DecodeError(FORMAT, 0, "both variants and segments");
  if (asMaster.variants.length > 0) return asMaster;
  if (media.isEmpty) throw new DecodeError(FORMAT, 0, "neither variants nor segments");
  return asMedia;
}
