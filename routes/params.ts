import { z } from "zod";
import { SluiceError } from "../src/base/errors.ts";
import { parseContentId, parseInfohash } from "../src/base/ids.ts";
import type { ContentSelector } from "../src/engine/contract.ts";

/** Of a parameter given twice the first counts; an empty one is none. */
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

/** A parameter that has no wrong values: what is not expected is as if it were not given. */
function tolerant<const T extends string>(values: readonly [T, ...T[]]) {
  return text
    .transform((value) => values.find((known) => known === value?.toLowerCase()))
    .meta({ type: "string", enum: values });
}

/**
 * The parameters of the playback endpoints that have an effect here. All others, those of the interface and stray
 * ones, are accepted and change nothing (docs/choices.md: ignored-parameters).
 */
export const playbackParams = z.object({
  content_id: text.describe(
    "A content id: 40 hexadecimal digits. Of this and the next three, the first that is given counts",
  ),
  id: text.describe("Another name of content_id"),
  infohash: text.describe("40 hexadecimal digits"),
  url: text.describe("The URL of a transport file, or of a stream"),
  magnet: text.describe("A magnet link"),
  format: tolerant(["redirect", "json"]).describe(
    "json: a session with its URLs; else a redirect to the stream",
  ),
  pid: text.describe(
    "The player: the same one on the same content is the same session, on other content it ends the earlier one",
  ),
  sid: text.describe("Another name of pid"),
  _idx: integer.describe("Which file, as get_media_files counts; the largest that plays where it is absent"),
  container: tolerant(["auto", "ts", "fmp4"]).describe("What HLS segments are made of"),
  preferred_audio_language: text
    .transform((value) => (value && /^[a-z]{2,3}$/i.test(value) ? value.toLowerCase() : undefined))
    .meta({ type: "string", description: "Two or three letters, such as eng" }),
  quality: text
    .transform((value) => (value && /^\d{2,5}$/.test(value) ? Number(value) : undefined))
    .meta({ type: "integer", description: "Of HLS in several forms: at most so many lines, such as 720" }),
  stream_id: integer.describe(
    "Of HLS in several forms: which, as hls_streams of stat counts; -1 for the engine's choice",
  ),
  use_api_events: tolerant(["1", "true"]).describe("1: the session has an event_url"),
  client_session_id: integer.describe("Echoed; -1 where there is none"),
});

export type PlaybackParams = z.output<typeof playbackParams>;

/** Says which parameter cannot be read, and why. */
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

/** What the request names: the first of content_id, infohash, url, magnet; undefined where there is none of them. */
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

/** The parts of a magnet link that land in our own query where a client forgot to encode it. */
const MAGNET_PARTS = ["dn", "tr", "x.pe", "so", "xl", "s"];

function wholeMagnet(magnet: string, query: URLSearchParams): string {
  let whole = magnet;
  for (const part of MAGNET_PARTS) {
    for (const value of query.getAll(part)) whole += `&${part}=${encodeURIComponent(value)}`;
  }
  return whole;
}
