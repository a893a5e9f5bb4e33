import { z } from "zod";
import { SluiceError } from "../../src/base/errors.ts";
import { parseContentId, parseInfohash } from "../../src/base/ids.ts";
import type { ContentSelector } from "../../src/transfer/contract.ts";

/** A text parameter. If it is given twice, the first value counts; an empty value counts as absent. */
const text = z
  .preprocess((value) => {
    const first = Array.isArray(value) ? value[0] : value;
    return typeof first === "string" && first.trim() !== "" ? first.trim() : undefined;
  }, z.string().optional())
  .meta({ type: "string" });

const integer = text
  .transform((value, context) => {
    if (value === undefined || /^-?\d{1,9}$/.test(value))
      return value === undefined ? undefined : Number(value);
    context.addIssue(`expected a whole number, got "${value.slice(0, 60)}"`);
    return z.NEVER;
  })
  .meta({ type: "integer" });

/** More files than a player lists; a longer list is cut. */
const MAX_INDEXES = 1_000;

/** A comma-separated list of file indexes; anything else in it is ignored. Undefined if none is left. */
function indexes(description: string) {
  return text
    .transform((value) => {
      const given = (value ?? "").split(",", MAX_INDEXES).filter((part) => /^\s*\d{1,9}\s*$/.test(part));
      return given.length === 0 ? undefined : given.map(Number);
    })
    .meta({ type: "string", description });
}

/** A parameter without invalid values: an unknown value counts as absent. */
function tolerant<const T extends string>(values: readonly [T, ...T[]]) {
  return text
    .transform((value) => values.find((known) => known === value?.toLowerCase()))
    .meta({ type: "string", enum: values });
}

/** A switch of the interface: 1 or true. */
function flag(description: string) {
  return text
    .transform((value) => value === "1" || value?.toLowerCase() === "true")
    .meta({ type: "boolean", description });
}

/**
 * The parameters of the playback endpoints that this engine uses. It accepts and ignores all others
 * (docs/choices.md: ignored-parameters).
 */
export const playbackParams = z.object({
  content_id: text.describe(
    "A content id: 40 hexadecimal digits. If several of content_id, infohash, url and magnet are given, the first in this order counts",
  ),
  id: text.describe("Deprecated alias of content_id"),
  infohash: text.describe("40 hexadecimal digits"),
  url: text.describe("The URL of a transport file or of a stream"),
  magnet: text.describe("A magnet link"),
  format: tolerant(["redirect", "json"]).describe(
    "json: a session with its URLs; redirect (default): a redirect to the stream",
  ),
  pid: text.describe(
    "An identifier of the player. The same player and content share one session; starting other content stops the player's earlier session",
  ),
  sid: text.describe("Deprecated alias of pid"),
  _idx: integer.describe(
    "The file index from get_media_files; default: the largest playable file, or the first part of a series",
  ),
  container: tolerant(["auto", "ts", "fmp4", "raw"]).describe(
    "The container of HLS segments; raw: /ace/getstream serves a film as the file itself, in which players can seek",
  ),
  preferred_audio_language: text
    .transform((value) => (value && /^[a-z]{2,3}$/i.test(value) ? value.toLowerCase() : undefined))
    .meta({ type: "string", description: "A language code of two or three letters, such as eng" }),
  transcode_audio: flag("1: converts all audio except AAC and MP3 to AAC"),
  transcode_mp3: flag("1: converts MP3 and MP2 audio to AAC"),
  transcode_ac3: flag("1: converts AC-3 and E-AC-3 audio to AAC"),
  audio_channels: integer.describe("Channels of converted audio: 6 keeps 5.1; 2 (default) mixes to stereo"),
  quality: text
    .transform((value) => (value && /^\d{2,5}$/.test(value) ? Number(value) : undefined))
    .meta({
      type: "integer",
      description:
        "For HLS sources with several variants, and broadcasts in several qualities: the maximum height in lines, such as 720",
    }),
  stream_id: integer.describe(
    "For HLS sources with several variants, and broadcasts in several qualities: the index in hls_streams of stat; -1: the engine chooses",
  ),
  low_latency: flag(
    "1: a live MPEG-TS stream starts at its edge; 0: up to 7 s behind it, so that players start sooner",
  ),
  use_api_events: flag("1: the session has an event_url with all events"),
  use_stop_notifications: flag("1: the session has an event_url with the event download_stopped"),
  use_api_stop: flag("The same as use_stop_notifications"),
  force_session_restart: flag("1: starts anew instead of joining the session of the same player"),
  disable_p2p: flag("1: refuses content that comes from peers; content of web servers plays"),
  playlist_selected_indexes: indexes(
    "File indexes, comma-separated: plays the first of them instead of the content's main file, unless _idx is given",
  ),
  next_file_indexes: indexes(
    "File indexes, comma-separated, that will be played next: their heads are fetched when the played file is complete",
  ),
  playlist_output_format_live: tolerant(["auto", "original", "hls", "http"]).describe(
    "The output for live content: hls, http (MPEG-TS), original (HLS if it comes as HLS), or auto (that of the endpoint)",
  ),
  playlist_output_format_vod: tolerant(["auto", "original", "hls", "http"]).describe(
    "The same for other content",
  ),
  client_session_id: integer.describe("Returned unchanged; default -1"),
});

export type PlaybackParams = z.output<typeof playbackParams>;

/** Builds the `bad_parameter` error for the first issue of a failed validation. */
export function badParameter(error: {
  readonly issues: readonly { path: PropertyKey[]; message: string }[];
}): SluiceError {
  const first = error.issues[0];
  return new SluiceError(
    "bad_parameter",
    `${first?.path.join(".") ?? "query"}: ${first?.message ?? "cannot be read"}`,
  );
}

/** The parameters that name content. */
type SelectorParams = Pick<PlaybackParams, "content_id" | "id" | "infohash" | "url" | "magnet">;

/** Returns the content that a request names: the first of content_id, infohash, url, magnet; undefined if all are absent. Throws `bad_selector`. */
export function selectorOf(params: SelectorParams, query: URLSearchParams): ContentSelector | undefined {
  const contentId = params.content_id ?? params.id;
  if (contentId !== undefined) {
    const parsed = parseContentId(contentId);
    if (parsed === undefined) throw expectedDigits("content_id", contentId);
    return { kind: "content_id", contentId: parsed };
  }
  if (params.infohash !== undefined) {
    const parsed = parseInfohash(params.infohash);
    if (parsed === undefined) throw expectedDigits("infohash", params.infohash);
    return { kind: "infohash", infohash: parsed };
  }
  if (params.url !== undefined) return { kind: "url", url: params.url };
  if (params.magnet !== undefined) return { kind: "magnet", magnet: wholeMagnet(params.magnet, query) };
  return undefined;
}

function expectedDigits(name: string, got: string): SluiceError {
  return new SluiceError(
    "bad_selector",
    `${name}: expected 40 hexadecimal digits, got "${got.slice(0, 60)}"`,
  );
}

/** The parts of a magnet link that end up in the request's own query if a client does not encode the link. */
const MAGNET_PARTS = ["dn", "tr", "x.pe", "so", "xl", "s"];

function wholeMagnet(magnet: string, query: URLSearchParams): string {
  let whole = magnet;
  for (const part of MAGNET_PARTS) {
    for (const value of query.getAll(part)) whole += `&${part}=${encodeURIComponent(value)}`;
  }
  return whole;
}
