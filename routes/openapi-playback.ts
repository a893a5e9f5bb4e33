import {
  type JsonSchema,
  jsonAnswer,
  type OpenApiAnswer,
  type OpenApiOperation,
  type OpenApiParameter,
  type OpenApiPath,
  queryParameter,
  reference,
  shapeOf,
} from "./openapi-parts.ts";
import { playbackParams } from "./params.ts";

const TAG = "Playback";

const infohash = pathParameter("infohash", "40 hexadecimal digits");
const key = pathParameter("key", "Of the session's URLs");

/** The one parameter that `/hls/manifest.m3u8` alone takes. */
const MANIFEST_URL = "manifest_url";

/** What players of live streams send when they read the playlist again (RFC 8216bis 6.2.5). */
const reloadQuery: readonly OpenApiParameter[] = [
  {
    ...textQuery("_HLS_msn", "Live: held until this segment is there"),
    schema: { type: "integer", minimum: 0 },
  },
  {
    ...textQuery("_HLS_part", "Live: held until this part of that segment is there"),
    schema: { type: "integer", minimum: 0 },
  },
  {
    ...textQuery("_HLS_skip", "Live: leaves the old segments out"),
    schema: { type: "string", enum: ["YES", "v2"] },
  },
];

const playbackQuery = Object.entries(shapeOf(playbackParams))
  .filter(([name]) => name !== MANIFEST_URL)
  .map(([name, schema]) => queryParameter(name, schema));

/** Starting, watching, and looking at sessions; files as they are (interface: Playback endpoints, Session URLs). */
export function playbackPaths(): Record<string, OpenApiPath> {
  return {
    "/ace/getstream": startPath("getstream", "Plays content as one MPEG transport stream"),
    "/ace/manifest.m3u8": startPath("manifest", "Plays content as HLS"),
    "/hls/manifest.m3u8": startPath(
      "hls_manifest",
      "Plays an HLS playlist of another server, or content as HLS",
      [textQuery(MANIFEST_URL, "The URL of the playlist")],
    ),
    "/ace/m/{infohash}/{key}.m3u8": {
      get: operation("session_manifest", "The HLS playlist of a session", [infohash, key, ...reloadQuery], {
        200: binary("The playlist", "application/vnd.apple.mpegurl"),
        ...refusals,
      }),
    },
    "/ace/r/{infohash}/{key}": {
      get: operation("session_stream", "The transport stream of a session", [infohash, key], {
        200: binary("The stream, without a length", "video/mp2t"),
        ...refusals,
      }),
    },
    "/ace/c/{infohash}/{segment}": {
      get: operation(
        "segment",
        "One HLS segment; Range is answered",
        [
          infohash,
          pathParameter(
            "segment",
            "Such as 1000000.ts, or 512.p3.ts for a part; the names are those of the playlist",
          ),
        ],
        {
          200: binary("The segment", "video/mp2t"),
          206: binary("A part of it", "video/mp2t"),
          ...refusals,
        },
      ),
    },
    "/ace/stat/{infohash}/{key}": {
      get: operation(
        "session_info",
        "How a session is",
        [infohash, key, textQuery("skip_player_activity", "1: asking does not keep the session alive")],
        { 200: enveloped(reference("SessionInfo")) },
      ),
    },
    "/ace/cmd/{infohash}/{key}": {
      get: operation(
        "session_command",
        "Stops a session, moves it within a live stream, or sets how long it lives without being read",
        [
          infohash,
          key,
          {
            ...textQuery("method", "What to do"),
            required: true,
            schema: { type: "string", enum: ["stop", "liveseek", "set_player_activity_timeout"] },
          },
          {
            ...textQuery("pos", "UNIX seconds, for liveseek; -1 is live"),
            schema: { type: "integer" },
          },
          {
            ...textQuery("timeout", "Seconds, for set_player_activity_timeout"),
            schema: { type: "integer" },
          },
        ],
        { 200: enveloped({ type: "string", enum: ["ok"] }) },
      ),
    },
    "/ace/event/{infohash}/{key}": {
      get: operation("session_event", "The next event of a session, waited for up to 15 s", [infohash, key], {
        200: enveloped({
          type: ["object", "null"],
          properties: { name: { type: "string" }, params: { type: "object" } },
        }),
      }),
    },
    "/files/{infohash}/{index}/{name}": {
      get: operation(
        "file",
        "A file of the content as it is; Range is answered",
        [
          infohash,
          { ...pathParameter("index", "As get_media_files counts"), schema: { type: "integer" } },
          pathParameter("name", "Any name, for the player's eyes"),
        ],
        {
          200: binary("The file", "application/octet-stream"),
          206: binary("A part of it", "application/octet-stream"),
          ...refusals,
        },
      ),
    },
  };
}

function startPath(name: string, summary: string, more: readonly OpenApiParameter[] = []): OpenApiPath {
  const answers = {
    200: enveloped(reference("PlaybackSession")),
    302: { description: "Without format=json: to the stream itself" },
    ...refusals,
  };
  const get = operation(name, summary, [...more, ...playbackQuery], answers);
  const base64 = { type: "string", contentEncoding: "base64" };
  const schema = { type: "object", properties: { transport_file_data: base64 } };
  const requestBody = { content: { "application/json": { schema } } };
  return { get, post: { ...get, operationId: `${name}_of_transport_file`, requestBody } };
}

function operation(
  operationId: string,
  summary: string,
  parameters: readonly OpenApiParameter[],
  responses: Readonly<Record<string, OpenApiAnswer>>,
): OpenApiOperation {
  const open = { "x-remote": true, "x-other-pages": true };
  return { operationId, tags: [TAG], summary, security: [], ...open, parameters, responses };
}

function pathParameter(name: string, description: string): OpenApiParameter {
  return { name, in: "path", required: true, description, schema: { type: "string" } };
}

function textQuery(name: string, description: string): OpenApiParameter {
  return { name, in: "query", required: false, description, schema: { type: "string" } };
}

function binary(description: string, type: string): OpenApiAnswer {
  return { description, content: { [type]: { schema: { type: "string", format: "binary" } } } };
}

const refusals = {
  default: {
    description: "What went wrong, with a status of the table of errors",
    content: { "text/plain": { schema: { type: "string" } } },
  },
};

function enveloped(response: JsonSchema): OpenApiAnswer {
  const success = {
    type: "object",
    properties: { response, error: { type: "null" } },
    required: ["response", "error"],
  };
  return jsonAnswer("The session or what was asked of it, or the error", {
    oneOf: [success, reference("PlaybackFailure")],
  });
}
