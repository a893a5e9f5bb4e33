import { DecodeError } from "../base/errors.ts";
import { type HlsMaster, HlsMasterBuilder } from "./hls-master.ts";
import { type HlsMedia, HlsMediaBuilder } from "./hls-media.ts";
import { type HlsVariableSources, HlsVariables } from "./hls-variables.ts";

/** Limit in characters; a day of two-second segments with long signed URLs almost reaches it. */
const MAX_LENGTH = 16 * 1024 * 1024;
/** Limit of a URI in characters; servers accept no longer ones. */
const MAX_URI_LENGTH = 16 * 1024;
const FORMAT = "HLS manifest";
/** `#EXTM3U` at the start; comments and blank lines may precede it. */
const HEAD = /^\ufeff?\s*(?:#(?!EXT)[^\r\n]*[\r\n]\s*)*#EXTM3U(?:\s|$)/;

/**
 * Parses an HLS manifest from another server (RFC 8216, variables of RFC 8216bis). Strict if an error would play wrong bytes, lenient about missing values that
 * can be derived. Ignores unknown tags, including those of low latency, because the manifest lists whole segments too. URIs are
 * neither resolved nor checked. Throws `DecodeError`.
 */
export function parseHlsPlaylist(text: string, sources: HlsVariableSources = {}): HlsMaster | HlsMedia {
  if (text.length > MAX_LENGTH)
    throw new DecodeError(FORMAT, MAX_LENGTH, `the manifest has more than ${MAX_LENGTH} characters`);
  if (!HEAD.test(text)) throw new DecodeError(FORMAT, 0, "expected #EXTM3U");
  const master = new HlsMasterBuilder();
  const media = new HlsMediaBuilder();
  const variables = new HlsVariables(sources);
  const lineEnd = text.includes("\n") ? "\n" : "\r";
  for (let at = 0, next = 0; at < text.length; at = next) {
    const end = text.indexOf(lineEnd, at);
    next = end < 0 ? text.length : end + 1;
    const line = text.slice(at, next).trim();
    if (line === "") continue;
    if (line.startsWith("#EXT-X-DEFINE:")) variables.define(line.slice(line.indexOf(":") + 1), at);
    else if (line.startsWith("#EXT")) {
      const colon = line.indexOf(":");
      const name = line.slice(1, colon < 0 ? undefined : colon).trimEnd();
      const written = colon < 0 ? "" : line.slice(colon + 1);
      // The title of a segment is plain text.
      const value = name === "EXTINF" ? written : variables.replace(written, at);
      master.tag(name, value);
      media.tag(name, value, at);
    } else if (!line.startsWith("#")) {
      const uri = variables.replace(line, at);
      if (uri.length > MAX_URI_LENGTH)
        throw new DecodeError(FORMAT, at, `a URI has more than ${MAX_URI_LENGTH} characters`);
      if (master.awaitsUri) master.uri(uri, at);
      else if (media.awaitsUri) media.uri(uri, at);
      else throw new DecodeError(FORMAT, at, "a URI has no #EXTINF or #EXT-X-STREAM-INF before it");
    }
  }
  const [asMaster, asMedia] = [master.finish(variables.values), media.finish()];
  if (asMaster.variants.length > 0 && asMedia.segments.length > 0)
    throw new DecodeError(FORMAT, 0, "the manifest has both variants and segments");
  if (asMaster.variants.length > 0) return asMaster;
  if (media.isEmpty) throw new DecodeError(FORMAT, 0, "the manifest has neither variants nor segments");
  return asMedia;
}
