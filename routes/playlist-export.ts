import { type Context, Hono } from "hono";
import { z } from "zod";
import { channelNumberOf } from "../src/base/channel-numbers.ts";
import { SluiceError } from "../src/base/errors.ts";
import type { UnixSeconds } from "../src/base/time.ts";
import type { CatchUp } from "../src/catch-up/catch-up-contract.ts";
import type { ExportOptions, Item, ItemQuery } from "../src/library/contract.ts";
import type { Library } from "../src/library/library.ts";
import { numberedChannels } from "./channel-list.ts";
import { itemOf } from "./control/guide.ts";
import { bool, integerList, oneOf, parameterError, text } from "./control/params.ts";
import { omitUndefined, pageParams, titlePart } from "./control/playlist-params.ts";
import { baseUrl } from "./http/access.ts";
import type { RouteEnv } from "./http/dependencies.ts";
import { attachment } from "./http/responses.ts";

const DAY_MS = 86_400_000;

/** A host with an optional port and nothing else, because it is copied into every URL of the list. */
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

/** The parameters of `/playlist/get`; `is_favorite` is the deprecated name of `favorites`. */
export const exportParams = z.object({
  format: oneOf(["m3u", "acestream", "json"]).describe("Default m3u"),
  player: oneOf(["vlc", "kodi", "tivimate", "jellyfin"]).describe(
    "Format m3u: only what this player reads; default: for any player",
  ),
  name: titlePart,
  category: text.describe("Only items of this category"),
  subcategory: text.describe("Only items with this subcategory or tag"),
  favorites: bool.describe("1: only favourites"),
  is_favorite: bool.describe("Deprecated alias of favorites"),
  items: integerList.describe("Only items with these ids"),
  sort: bool.describe("1: by title; default: in the order in which items were added"),
  channel_number: text.describe("Only the channel to which its list gives this number (tvg-chno)"),
  ...pageParams,
  host: host.describe("The host in all URLs; default: the host of the request"),
  protocol: oneOf(["http", "hls"]).describe("Default http (MPEG-TS)"),
  transcode_audio: bool.describe("Added to all URLs"),
  transcode_mp3: bool.describe("Added to all URLs"),
  transcode_ac3: bool.describe("Added to all URLs"),
  preferred_audio_language: language.describe("Added to all URLs"),
  download: bool.describe("1: browsers save the playlist as a file"),
  skip_autosearch: bool.describe("1: each item plays its own content, even if auto search is on"),
  generate_player_id: bool.describe("1: every URL has a pid of its own"),
  show_epg: bool.describe("1: adds the present programme of each item and the next one (format json)"),
  skip_dead: bool.describe("1: without channels that did not play in their last visits (--probe)"),
});

/** What exports need. */
interface ExportServices {
  readonly library: Library;
  readonly catchUp?: CatchUp;
}

/** Returns for how many days the past programmes of an item can be played; undefined if its channel is not kept. */
export function catchUpDaysOf(catchUp: CatchUp | undefined, item: Item): number | undefined {
  return catchUp?.isKept(item) ? Math.max(1, Math.round(catchUp.windowMs / DAY_MS)) : undefined;
}

type ExportParams = z.output<typeof exportParams>;

/**
 * Serves the user's playlist to players: `/playlist/get`, and `/playlist/<id>.m3u` for players that require the file
 * extension. It needs no token, because players have none; the access middleware refuses pages of other sites.
 *
 * CHOICE(export-defaults): `format` is m3u and `protocol` is http (MPEG-TS). Items are sorted in the order in which they
 * were added, which is the order of their source. `transcode_*` and `preferred_audio_language` are added if given.
 */
export function createExportRoutes(services: ExportServices): Hono<RouteEnv> {
  const { library } = services;
  const app = new Hono<RouteEnv>();
  app.get("/playlist/get", async (c) => {
    const number = c.req.query("channel_number");
    if (number === undefined) return exportResponse(c, services, {});
    const item = (await numberedChannels(library)).get(number);
    return exportResponse(c, services, { ids: item && channelNumberOf(item) === number ? [item.id] : [] });
  });
  // CHOICE(tv-link): short, because it is typed with a remote control; not a redirect, because some players do not follow one.
  app.get("/tv", (c) => exportResponse(c, services, {}, playerOf(c.req.header("user-agent"))));
  app.get("/tv/:player{vlc|kodi|tivimate|jellyfin|emby|plex}", (c) =>
    exportResponse(c, services, {}, { player: formNameOf(c.req.param("player")) }),
  );
  // CHOICE(playlist-id): 0 is the whole list; every other number is the id of an external playlist.
  app.get("/playlist/:name{\\d{1,15}\\.m3u8?}", async (c) => {
    const id = Number.parseInt(c.req.param("name"), 10);
    if (id === 0) return exportResponse(c, services, {});
    if (!(await library.externalPlaylists.get(id)))
      throw new SluiceError("unknown_external_playlist", `${id}; 0 is the whole list`);
    return exportResponse(c, services, { externalPlaylistId: id });
  });
  // The names that players expect of a guide; none of them needs a token.
  app.get("/epg.xml", (c) => guideResponse(c, library));
  app.get("/epg.xml.gz", (c) => guideResponse(c, library, { zip: new CompressionStream("gzip") }));
  app.get("/guide/:programme{\\d{1,15}-\\d{1,10}\\.ics}", async (c) => {
    const [id, start] = c.req.param("programme").split(/[-.]/).map(Number) as [number, UnixSeconds];
    return reminderResponse(c, library, await itemOf(library, id), start);
  });
  return app;
}

/** The parameters for the player that sent this `User-Agent`; none for others. */
function playerOf(userAgent = ""): Readonly<Record<string, string>> {
  const name = /\b(vlc|kodi|tivimate|jellyfin|emby|plex)\b/i.exec(userAgent)?.[1];
  return name === undefined ? {} : { player: formNameOf(name.toLowerCase()) };
}

/** Emby and Plex read what Jellyfin reads. */
function formNameOf(player: string): string {
  return player === "emby" || player === "plex" ? "jellyfin" : player;
}

/** The guide of the whole list, or of `part` of it, as XMLTV; `zip` compresses it as a file, not as a content encoding. */
export function guideResponse(
  c: Context<RouteEnv>,
  library: Library,
  { zip, part }: { readonly zip?: CompressionStream; readonly part?: ItemQuery } = {},
): Response {
  const headers = {
    "content-type": zip ? "application/gzip" : "application/xml; charset=utf-8",
    "cache-control": "no-store",
  };
  if (c.req.method === "HEAD") return c.body(null, 200, headers);
  const guide = library.exportGuide({ ...part, sort: "added" });
  const body = zip ? guide.pipeThrough(zip as ReadableWritablePair<Uint8Array, Uint8Array>) : guide;
  return c.body(body as ReadableStream<Uint8Array<ArrayBuffer>>, 200, headers);
}

/** A calendar file with the programme of an item that starts at `start`. */
async function reminderResponse(
  c: Context<RouteEnv>,
  library: Library,
  item: Item,
  start: UnixSeconds,
): Promise<Response> {
  const url = `${baseUrl(c)}/play/0/${item.id}`;
  const reminder = item.isEnabled ? await library.reminder(item, start, url) : undefined;
  if (reminder === undefined)
    throw new SluiceError("unknown_item", `item ${item.id} has no programme that starts at ${start}`);
  return c.body(reminder.file, 200, {
    "content-type": "text/calendar; charset=utf-8",
    "cache-control": "no-store",
    ...attachment(`${reminder.title.slice(0, 80).replace(/[/\\]/g, "_")}.ics`),
  });
}

/** Exports the items of `part` with the parameters of the query, of which `fixed` replaces some, and with these links. */
export function exportResponse(
  c: Context<RouteEnv>,
  { library, catchUp }: ExportServices,
  part: ItemQuery,
  fixed: Readonly<Record<string, string>> = {},
  links: Pick<ExportOptions, "linkOf"> = {},
): Response {
  const parsed = exportParams.safeParse({ ...c.req.queries(), ...fixed });
  if (!parsed.success) throw parameterError(parsed.error);
  const params = parsed.data;
  const format = params.format ?? "m3u";
  const extension = format === "json" ? "json" : "m3u";
  const headers = {
    // Kodi, VLC, TiviMate and Jellyfin accept this type. With the type of HLS some players would play the list as one stream.
    "content-type": format === "json" ? "application/json" : "audio/x-mpegurl; charset=utf-8",
    "cache-control": "no-store",
    ...(params.download && {
      "content-disposition": `attachment; filename="playlist.${extension}"`,
    }),
  };
  if (c.req.method === "HEAD") return c.body(null, 200, headers);
  const options = { ...optionsOf(params, part, c), ...links, format };
  const catchUpDays = (item: Item) => catchUpDaysOf(catchUp, item);
  return c.body(library.exportPlaylist({ ...options, catchUpDays }), 200, headers);
}

function optionsOf(
  params: ExportParams,
  part: ItemQuery,
  c: Context<RouteEnv>,
): Omit<ExportOptions, "format"> {
  const query: ItemQuery = {
    ...part,
    ...omitUndefined({
      name: params.name,
      category: params.category,
      subcategory: params.subcategory,
      offset: params.offset,
      limit: params.limit,
    }),
    ...((params.favorites || params.is_favorite) && { isFavorite: true }),
    ...(params.items.length > 0 && { ids: params.items }),
    isEnabled: true,
    sort: params.sort ? "title" : "added",
  };
  return {
    query,
    base: params.host === undefined ? baseUrl(c) : withHost(params.host, baseUrl(c)),
    protocol: params.protocol ?? "http",
    urlParameters: urlParameters(params),
    skipAutoSearch: params.skip_autosearch ?? false,
    generatePlayerId: params.generate_player_id ?? false,
    ...(params.show_epg && { showsProgrammes: true }),
    ...(params.player && { player: params.player }),
    ...(params.skip_dead && { skipsDead: true }),
  };
}

/** Replaces the host of a base URL, and keeps the port unless `host` has one. */
function withHost(host: string, base: string): string {
  const [, scheme, port = ""] = /^(\w+):\/\/.*?(:\d+)?$/.exec(base)!;
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
