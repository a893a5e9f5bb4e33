import { playbackParams } from "./http/params.ts";
import { exampleOf, type JsonSchema } from "./openapi-examples.ts";
import {
  ERROR_RESPONSES,
  envelope,
  jsonResponse,
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
import { OPENAPI_SCHEMAS } from "./openapi-schemas.ts";

const TAG = "Playback";

const infohash = pathParameter("infohash", "40 hexadecimal digits");
const key = pathParameter("key", "The session key, from the session's URLs");

/** The delivery directives that live players send when they reload the playlist (RFC 8216bis 6.2.5). */
const reloadQuery: readonly OpenApiParameter[] = [
  {
    ...textParameter("_HLS_msn", "Live: the response waits until this segment is available"),
    schema: { type: "integer", minimum: 0 },
  },
  {
    ...textParameter("_HLS_part", "Live: the response waits until this part of that segment is available"),
    schema: { type: "integer", minimum: 0 },
  },
  {
    ...textParameter("_HLS_skip", "Live: omits older segments (delta update)"),
    schema: { type: "string", enum: ["YES", "v2"] },
  },
];

const playbackQuery = queryParameters(playbackParams);

/** The stateless HLS of caches, and its segments. */
function sharedPaths(): Record<string, OpenApiPath> {
  const file = pathParameter("file", "Index of the file, counted from 0");
  const name = pathParameter("name", "index.m3u8, or the file name of a segment from that playlist");
  const about = "HLS without a session, for caches: the playlist and its segments, the same for all players";
  const responses = {
    200: binary("The playlist, or a segment", "application/vnd.apple.mpegurl"),
    304: { description: "The client has this version (`If-None-Match`)" },
    ...ERROR_RESPONSES,
  };
  return {
    "/live/{infohash}/{name}": {
      get: operation("shared_live", `A live stream as ${about}`, [infohash, name], responses),
    },
    "/vod/{infohash}/{file}/{name}": {
      get: operation("shared_file", `A file as ${about}`, [infohash, file, name], responses),
    },
    "/vod/{infohash}/{file}/aac/{name}": {
      get: operation(
        "shared_file_aac",
        `A file, its audio as AAC, too, as ${about}`,
        [infohash, file, name],
        responses,
      ),
    },
  };
}

/** Describes playback endpoints, session URLs, segments and files (interface: Playback endpoints, Session URLs). */
export function playbackPaths(): Record<string, OpenApiPath> {
  return {
    "/ace/getstream": startPath("getstream", "Plays content as one MPEG transport stream"),
    "/ace/manifest.m3u8": startPath("manifest", "Plays content as HLS"),
    "/hls/manifest.m3u8": startPath(
      "hls_manifest",
      "Plays an HLS playlist of another server, or content as HLS",
      [textParameter("manifest_url", "The URL of the playlist")],
    ),
    "/ace/m/{infohash}/{key}.m3u8": {
      get: operation("session_manifest", "The HLS playlist of a session", [infohash, key, ...reloadQuery], {
        200: binary("The playlist", "application/vnd.apple.mpegurl"),
        ...ERROR_RESPONSES,
      }),
    },
    "/ace/r/{infohash}/{key}": {
      get: operation("session_stream", "The transport stream of a session", [infohash, key], {
        200: binary("The stream; with its length and Range for MP4 and MPEG-TS files", "video/mp2t"),
        206: binary("The requested range", "video/mp2t"),
        ...ERROR_RESPONSES,
      }),
    },
    "/ace/c/{infohash}/{segment}": {
      get: operation(
        "segment",
        "One HLS segment; supports Range",
        [
          infohash,
          pathParameter(
            "segment",
            "The file name from the playlist, such as 1000000.ts, or 512.p3.ts for a part",
          ),
        ],
        {
          200: binary("The segment", "video/mp2t"),
          206: binary("The requested range", "video/mp2t"),
          ...ERROR_RESPONSES,
        },
      ),
    },
    ...sharedPaths(),
    "/ace/stat/{infohash}/{key}": {
      get: operation(
        "session_info",
        "The state of a session",
        [
          infohash,
          key,
          textParameter("skip_player_activity", "1: this request does not keep the session alive"),
        ],
        { 200: enveloped(reference("SessionInfo"), OPENAPI_SCHEMAS.SessionInfo), ...REFUSALS },
      ),
    },
    "/ace/stat/{infohash}/{key}/events": {
      get: operation(
        "session_events",
        "Sends the state of a session once a second, as server-sent events, and keeps the session alive",
        [infohash, key],
        {
          200: {
            description:
              'Each event `session` is a SessionInfo as JSON; after the end of the session the last one is `{"ended": reason}`',
            content: { "text/event-stream": { schema: { type: "string" } } },
          },
          ...REFUSALS,
        },
      ),
    },
    "/ace/cmd/{infohash}/{key}": {
      get: operation(
        "session_command",
        "Stops a session, seeks in a live stream, changes the stream, or sets the idle timeout of the session",
        [
          infohash,
          key,
          {
            ...textParameter("method", "The command"),
            required: true,
            schema: {
              type: "string",
              enum: ["stop", "liveseek", "set_stream", "set_player_activity_timeout"],
            },
          },
          {
            ...textParameter("pos", "For liveseek: UNIX seconds; -1 is the live edge"),
            schema: { type: "integer" },
          },
          {
            ...textParameter(
              "stream_index",
              "For set_stream: the index in hls_streams of stat; -1: the engine chooses",
            ),
            schema: { type: "integer" },
          },
          {
            ...textParameter("timeout", "For set_player_activity_timeout: seconds"),
            schema: { type: "integer" },
          },
        ],
        { 200: enveloped({ type: "string", enum: ["ok"] }), ...REFUSALS },
      ),
    },
    "/ace/event/{infohash}/{key}": {
      get: operation("session_event", "The next event of a session; waits up to 15 s", [infohash, key], {
        200: enveloped({
          type: ["object", "null"],
          properties: { name: { type: "string" }, params: { type: "object" } },
        }),
        ...REFUSALS,
      }),
    },
    "/files/{infohash}/{index}/{name}": {
      get: operation(
        "file",
        "An unmodified file of the content; supports Range",
        [
          infohash,
          { ...pathParameter("index", "The file index from get_media_files"), schema: { type: "integer" } },
          pathParameter("name", "Any file name, which the engine ignores"),
        ],
        {
          200: binary("The file", "application/octet-stream"),
          206: binary("The requested range", "application/octet-stream"),
          ...ERROR_RESPONSES,
        },
      ),
    },
    "/subtitles/{infohash}/{index}": {
      get: operation(
        "subtitles",
        "The text subtitles of a film, in the file and beside it, with an address of each as WebVTT and as SubRip. With ?delay=SECONDS (-600 to 600), an address shows them later",
        [infohash, { ...pathParameter("index", "The file index"), schema: { type: "integer" } }],
        {
          200: jsonResponse("The subtitles", {
            type: "object",
            required: ["subtitles"],
            properties: { subtitles: { type: "array", items: SUBTITLE } },
          }),
          ...ERROR_RESPONSES,
        },
      ),
    },
  };
}

const SUBTITLE = {
  type: "object",
  required: ["language", "title", "codec", "forced", "vtt", "srt"],
  properties: {
    language: { type: "string", description: "ISO 639-2; und if unknown" },
    title: { type: ["string", "null"] },
    codec: { type: "string" },
    forced: { type: "boolean", description: "Only essential text, such as translations of signs" },
    vtt: { type: "string", format: "uri" },
    srt: { type: "string", format: "uri" },
  },
};

function startPath(name: string, summary: string, more: readonly OpenApiParameter[] = []): OpenApiPath {
  const responses = {
    200: enveloped(reference("PlaybackSession"), OPENAPI_SCHEMAS.PlaybackSession),
    302: { description: "Without format=json: a redirect to the stream" },
    ...ERROR_RESPONSES,
  };
  const get = operation(name, summary, [...more, ...playbackQuery], responses);
  const base64 = { type: "string", contentEncoding: "base64" };
  const schema = { type: "object", properties: { transport_file_data: base64 } };
  const requestBody = { content: { "application/json": { schema } } };
  return { get, post: { ...get, operationId: `${name}_of_transport_file`, requestBody } };
}

function operation(
  operationId: string,
  summary: string,
  parameters: readonly OpenApiParameter[],
  responses: Readonly<Record<string, OpenApiResponse>>,
): OpenApiOperation {
  const open = { "x-public": true, "x-remote": true, "x-other-pages": true };
  return { operationId, tags: [TAG], summary, security: [], ...open, parameters, responses };
}

function binary(description: string, type: string): OpenApiResponse {
  return { description, content: { [type]: { schema: { type: "string", format: "binary" } } } };
}

/** `resolved` is the schema behind the reference, for the example. */
function enveloped(response: JsonSchema, resolved: JsonSchema = response): OpenApiResponse {
  const schema = envelope("response", response, { type: "string" });
  return jsonResponse("The value or an error", schema, { response: exampleOf(resolved), error: null });
}
