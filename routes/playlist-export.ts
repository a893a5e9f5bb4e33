import { type Context, Hono } from "hono";
import { z } from "zod";
import { SluiceError } from "../src/base/errors.ts";
import type { ExportOptions, ItemQuery } from "../src/library/contract.ts";
import type { Library } from "../src/library/library.ts";
import { baseUrl } from "./access.ts";
import { queryParameters } from "./control/form.ts";
import { bool, integerList, oneOf, parameterError, text } from "./control/params.ts";
import type { RouteEnv } from "./house.ts";

/** A host, maybe with a port, and nothing else: it is written into every URL of the list. */
const HOST = /^(?:\[[0-9a-f:.]{2,45}\]|[a-z0-9](?:[a-z0-9_.-]{0,252}[a-z0-9])?)(?::\d{1,5})?$/i;

const host = text
  .refine((value) => value === undefined || HOST.test(value), "expected a host, or host:port")
  .meta({ type: "string" });

const language = text
  .refine(
    (value) => value === undefined || /^[a-z]{2,3}$/i.test(value),
    "expected a language code such as eng",
  )
  .meta({ type: "string" });

/** The parameters of `/playlist/get`; `is_favorite` is an older name of `favorites`. */
export const exportParams = z.object({
  format: oneOf(["m3u", "acestream", "json"]).describe("m3u unless given"),
  category: text.describe("Items of this category"),
  subcategory: text.describe("Items of this subcategory, or with this tag"),
  favorites: bool.describe("1: favourites only"),
  is_favorite: bool.describe("Another name of favorites"),
  items: integerList.describe("The ids of items"),
  host: host.describe("The host of all URLs; that of the request unless given"),
  protocol: oneOf(["http", "hls"]).describe("http (MPEG-TS) unless given"),
  transcode_audio: bool.describe("Written into all URLs"),
  transcode_mp3: bool.describe("Written into all URLs"),
  transcode_ac3: bool.describe("Written into all URLs"),
  preferred_audio_language: language.describe("Written into all URLs"),
  download: bool.describe("1: as a file to save"),
  skip_autosearch: bool.describe("1: each item plays its own content, auto search or not"),
  generate_player_id: bool.describe("1: a pid of its own in every URL"),
});

type ExportParams = z.output<typeof exportParams>;

/**
 * The user's list for players: `/playlist/get`, and `/playlist/<id>.m3u` for those that look at the name. Without a token, since
 * players have none; the gate keeps pages of other sites away.
 *
 * CHOICE(export-defaults): `format` is m3u, `protocol` is http (MPEG-TS); items come in the order in which they were added, as
 * their source has them; `transcode_*` and `preferred_audio_language` are written where they are given.
 */
export function createExportRoutes(library: Library): Hono<RouteEnv> {
  const app = new Hono<RouteEnv>();
  app.get("/playlist/get", (c) => answer(c, library, {}));
  // CHOICE(playlist-id): the whole list is number 0; every other number is that external playlist.
  app.get("/playlist/:name{\\d{1,15}\\.m3u8?}", async (c) => {
    const id = Number.parseInt(c.req.param("name"), 10);
    if (id === 0) return answer(c, library, {});
    if (!(await library.externalPlaylists.get(id)))
      throw new SluiceError("unknown_external_playlist", `${id}; 0 is the whole list`);
    return answer(c, library, { externalPlaylistId: id });
  });
  return app;
}

function answer(c: Context<RouteEnv>, library: Library, part: ItemQuery): Response {
  const read = exportParams.safeParse(queryParameters(c.req.raw));
  if (!read.success) throw parameterError(read.error);
  const params = read.data;
  const format = params.format ?? "m3u";
  const extension = format === "json" ? "json" : "m3u";
  const headers = {
    // What Kodi, VLC, TiviMate and Jellyfin take; the type of HLS would make some play the list as one stream.
    "content-type": format === "json" ? "application/json" : "audio/x-mpegurl; charset=utf-8",
    "cache-control": "no-store",
    ...(params.download && {
      "content-disposition": `attachment; filename="playlist.${extension}"`,
    }),
  };
  if (c.req.method === "HEAD") return c.body(null, 200, headers);
  return c.body(library.exportPlaylist({ ...optionsOf(params, part, c), format }), 200, headers);
}

function optionsOf(
  params: ExportParams,
  part: ItemQuery,
  c: Context<RouteEnv>,
): Omit<ExportOptions, "format"> {
  const query: ItemQuery = {
    ...part,
    ...(params.category !== undefined && { category: params.category }),
    ...(params.subcategory !== undefined && { subcategory: params.subcategory }),
    ...((params.favorites || params.is_favorite) && { isFavorite: true }),
    ...(params.items.length > 0 && { ids: params.items }),
    isEnabled: true,
    sort: "added",
  };
  return {
    query,
    base: params.host === undefined ? baseUrl(c) : baseAt(params.host, baseUrl(c)),
    protocol: params.protocol ?? "http",
    urlParameters: urlParameters(params),
    skipAutoSearch: params.skip_autosearch ?? false,
    generatePlayerId: params.generate_player_id ?? false,
  };
}

/** Another host, by the port that the asker came to unless it names one. */
function baseAt(host: string, asked: string): string {
  const [, scheme, port = ""] = /^(\w+):\/\/.*?(:\d+)?$/.exec(asked)!;
  return `${scheme}://${host.toLowerCase()}${/:\d+$/.test(host) ? "" : port}`;
}

function urlParameters(params: ExportParams): [string, string][] {
  const { transcode_audio, transcode_mp3, transcode_ac3, preferred_audio_language } = params;
  const given = Object.entries({ transcode_audio, transcode_mp3, transcode_ac3 }).filter(
    ([, value]) => value !== undefined,
  );
  return [
    ...given.map(([name, value]): [string, string] => [name, value ? "1" : "0"]),
    ...(preferred_audio_language === undefined
      ? []
      : [["preferred_audio_language", preferred_audio_language.toLowerCase()] as [string, string]]),
  ];
}
