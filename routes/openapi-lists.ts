import { searchParams, searchSchema } from "./control/search.ts";
import { statusMethods, versionMethods } from "./control/service-status.ts";
import { diagnosisSchema } from "./diagnosis.ts";
import { exampleOf, type JsonSchema } from "./openapi-examples.ts";
import {
  ERROR_RESPONSES,
  envelope,
  jsonResponse,
  jsonSchemaOf,
  type OpenApiOperation,
  type OpenApiParameter,
  type OpenApiPath,
  type OpenApiResponse,
  pathParameter,
  queryParameters,
  REFUSALS,
  reference,
  textParameter,
} from "./openapi-parts.ts";
import { exportParams } from "./playlist-export.ts";
import { receivedSchema } from "./restore.ts";

const DEVICE_PARAMETERS = [
  textParameter("players", "1: sends the players of get_available_players"),
  textParameter(
    "device",
    "The id of a player: sends what aircast_get_status returns of it, instead of the list",
  ),
];
const EVENTS: OpenApiResponse = {
  description: "Each event is a section that has changed, as JSON",
  content: { "text/event-stream": { schema: { type: "string" } } },
};
const exportQuery = queryParameters(exportParams);

/** Describes playlist export, search, play links, images, the diagnosis, and `/webui/api/service`. */
export function listPaths(): Record<string, OpenApiPath> {
  const list: Readonly<Record<string, OpenApiResponse>> = {
    200: {
      description: "The playlist, streamed",
      content: {
        "audio/x-mpegurl": { schema: { type: "string" } },
        "application/json": { schema: { type: "object" } },
      },
    },
    ...ERROR_RESPONSES,
  };
  const guide: Readonly<Record<string, OpenApiResponse>> = {
    200: {
      description: "The guide, streamed; its channel ids are the tvg-id of the exported playlist",
      content: { "application/xml": { schema: { type: "string" } } },
    },
    ...ERROR_RESPONSES,
  };
  const redirect = { 302: { description: "A redirect to the stream" }, ...ERROR_RESPONSES };
  const mode = textParameter("mode", "download: redirects to the file itself instead of a stream");
  return {
    "/playlist/get": {
      get: operation("playlist_export", "Lists", "Exports the playlist as M3U or JSON", exportQuery, list),
    },
    "/tv": {
      get: operation(
        "playlist_short",
        "Lists",
        "The same as /playlist/get, for typing; /tv/vlc, /tv/kodi, /tv/tivimate, /tv/jellyfin, /tv/emby and /tv/plex name the player",
        exportQuery,
        list,
      ),
    },
    "/playlist/{id}.m3u": {
      get: operation(
        "playlist_file",
        "Lists",
        "The same as /playlist/get, for players that require the file extension",
        [pathParameter("id", "The id of an external playlist; 0 for the whole playlist"), ...exportQuery],
        list,
      ),
    },
    "/epg.xml": {
      get: operation("guide", "Lists", "The programme guide of the playlist (XMLTV)", [], guide),
    },
    "/epg.xml.gz": { get: operation("guide_gz", "Lists", "The same, compressed with gzip", [], guide) },
    "/guide/{item}-{start}.ics": {
      get: operation(
        "guide_reminder",
        "Lists",
        "A programme of an item as a calendar file (iCalendar), with an alarm before it",
        [
          pathParameter("item", "The id of the item"),
          pathParameter("start", "When the programme starts, in UNIX seconds"),
        ],
        {
          200: {
            description: "The calendar file",
            content: { "text/calendar": { schema: { type: "string" } } },
          },
          ...ERROR_RESPONSES,
        },
      ),
    },
    "/search": {
      get: operation(
        "search_channels",
        "Lists",
        "Searches the playlist and the stored transport files by name",
        queryParameters(searchParams),
        {
          200: jsonResponse("The matches", enveloped(jsonSchemaOf(searchSchema, "output"))),
          ...ERROR_RESPONSES,
        },
      ),
    },
    "/api/diagnosis": {
      get: operation(
        "diagnosis",
        "Engine",
        "Diagnoses the engine: ports, peers, clock, disk, DNS, settings, and why each player waits",
        [textParameter("token", "The access token; not needed on the engine's own host")],
        {
          200: jsonResponse("The diagnosis", enveloped(jsonSchemaOf(diagnosisSchema, "output"))),
          ...REFUSALS,
        },
      ),
    },
    "/api/events": {
      get: operation(
        "events",
        "Engine",
        "Sends sessions, transfers, broadcasts, relays, recordings, downloads, tasks, speeds and log lines as they change, as server-sent events",
        [
          textParameter("token", "The access token; not needed on the engine's own host"),
          textParameter("session", "infohash/key: also sends the state of this session once a second"),
          ...DEVICE_PARAMETERS,
        ],
        { 200: EVENTS, ...REFUSALS },
      ),
    },
    "/api/players/events": {
      get: operation(
        "players_events",
        "Engine",
        "Sends the players, or what a device does, as they change, as server-sent events",
        DEVICE_PARAMETERS,
        { 200: EVENTS, ...REFUSALS },
      ),
    },
    "/api/restore": {
      post: {
        ...operation(
          "restore",
          "Engine",
          "Receives a backup as the body, checks all of it, and returns what it contains; restore_backup then restores it. Only for clients on the engine's own host",
          [],
          {
            200: jsonResponse("What the backup contains", enveloped(jsonSchemaOf(receivedSchema, "output"))),
            ...REFUSALS,
          },
        ),
        requestBody: {
          content: { "application/octet-stream": { schema: { type: "string", format: "binary" } } },
        },
      },
    },
    "/play/infohash/{infohash}": {
      get: operation(
        "play_infohash",
        "Lists",
        "Plays content",
        [pathParameter("infohash", "40 hexadecimal digits"), mode],
        redirect,
      ),
    },
    "/play/{playlist}/{item}": {
      get: operation(
        "play_item",
        "Lists",
        "Plays an item of the playlist",
        [pathParameter("playlist", "Any number"), pathParameter("item", "The id of the item"), mode],
        redirect,
      ),
    },
    "/image/{id}": {
      get: operation(
        "image",
        "Lists",
        "An uploaded logo",
        [pathParameter("id", "The image id, from the icons of an item")],
        {
          200: {
            description: "The image",
            content: { "image/*": { schema: { type: "string", format: "binary" } } },
          },
          404: { $ref: "#/components/responses/NotFound" },
          ...REFUSALS,
        },
      ),
    },
    "/webui/api/service": servicePath(),
  };
}

/** Describes `/webui/api/service`: one path, whose parameter `method` selects the result. */
function servicePath(): OpenApiPath {
  const methods = [...versionMethods, ...statusMethods];
  const method: OpenApiParameter = {
    ...pathParameter("method", "The method"),
    in: "query",
    schema: { type: "string", enum: methods.map(({ name }) => name) },
    example: methods[0]!.name,
  };
  const parameters = new Map(
    methods.flatMap(({ params }) => queryParameters(params)).map((each) => [each.name, each]),
  );
  const results = methods.map(({ result }) => jsonSchemaOf(result, "output"));
  const error = { anyOf: [{ type: "string" }, reference("ControlError")] };
  const example = { result: exampleOf(jsonSchemaOf(methods[0]!.result, "output")), error: null };
  const get = operation(
    "service",
    "Engine",
    "Returns the version, the status or an identifier of the engine",
    [method, ...parameters.values()],
    {
      200: jsonResponse("The result or an error", envelope("result", { anyOf: results }, error), example),
      ...REFUSALS,
    },
  );
  return { get };
}

function operation(
  operationId: string,
  tag: string,
  summary: string,
  parameters: readonly OpenApiParameter[],
  responses: Readonly<Record<string, OpenApiResponse>>,
): OpenApiOperation {
  return {
    operationId,
    tags: [tag],
    summary,
    security: [],
    "x-public": true,
    "x-remote": true,
    parameters,
    responses,
  };
}

function enveloped(result: JsonSchema): JsonSchema {
  return envelope("result", result, { type: "string" });
}
