import { statusMethods, versionMethods } from "./control/service-status.ts";
import { diagnosisSchema } from "./diagnosis.ts";
import {
  jsonAnswer,
  jsonSchemaOf,
  type OpenApiAnswer,
  type OpenApiOperation,
  type OpenApiParameter,
  type OpenApiPath,
  queryParameter,
  reference,
  shapeOf,
} from "./openapi-parts.ts";
import { exportParams } from "./playlist-export.ts";
import { searchParams, searchSchema } from "./search.ts";

const infohash = inPath("infohash", "40 hexadecimal digits");

const exportQuery = Object.entries(shapeOf(exportParams)).map(([name, schema]) =>
  queryParameter(name, schema),
);

/** The user's list for players, links to it, and what programs ask before they know the engine. */
export function listPaths(): Record<string, OpenApiPath> {
  const list: Readonly<Record<string, OpenApiAnswer>> = {
    200: {
      description: "The list, sent while it is read",
      content: {
        "audio/x-mpegurl": { schema: { type: "string" } },
        "application/json": { schema: { type: "object" } },
      },
    },
  };
  const redirect = { 302: { description: "To the stream" }, ...refusals };
  const downloadable: OpenApiParameter = {
    ...inPath("mode", "download: the file itself, not a stream of it"),
    in: "query",
    required: false,
  };
  return {
    "/playlist/get": {
      get: operation(
        "playlist_export",
        "Lists",
        "The playlist as M3U or JSON, for players",
        exportQuery,
        list,
      ),
    },
    "/playlist/{id}.m3u": {
      get: operation(
        "playlist_file",
        "Lists",
        "The same under a name that ends as players expect",
        [inPath("id", "An external playlist, or 0 for the whole list"), ...exportQuery],
        { ...list, ...refusals },
      ),
    },
    "/search": {
      get: operation(
        "search_channels",
        "Lists",
        "What the playlist and the transport files here hold, by name",
        Object.entries(shapeOf(searchParams)).map(([name, schema]) => queryParameter(name, schema)),
        { 200: jsonAnswer("What was found", enveloped(jsonSchemaOf(searchSchema, "output"))) },
      ),
    },
    "/api/diagnosis": {
      get: operation(
        "diagnosis",
        "Engine",
        "How the engine is doing: ports, peers, clock, disk, names, settings, and why each player waits",
        [{ ...inPath("token", "The access token; this host needs none"), in: "query", required: false }],
        { 200: jsonAnswer("What was found", enveloped(jsonSchemaOf(diagnosisSchema, "output"))) },
      ),
    },
    "/play/infohash/{infohash}": {
      get: operation("play_infohash", "Lists", "Plays content", [infohash, downloadable], redirect),
    },
    "/play/{playlist}/{item}": {
      get: operation(
        "play_item",
        "Lists",
        "Plays an item of the playlist",
        [inPath("playlist", "Any number"), inPath("item", "The id of the item"), downloadable],
        redirect,
      ),
    },
    "/image/{id}": {
      get: operation("image", "Lists", "An uploaded logo", [inPath("id", "As an item's icons name it")], {
        200: {
          description: "The picture",
          content: { "image/*": { schema: { type: "string", format: "binary" } } },
        },
        404: { description: "There is none" },
      }),
    },
    ...servicePaths(),
  };
}

/** The methods that `/webui/api/service` answers; behind `#` for the same reason as control methods. */
function servicePaths(): Record<string, OpenApiPath> {
  const paths = [...versionMethods, ...statusMethods].map((method) => {
    const name: OpenApiParameter = {
      ...inPath("method", ""),
      in: "query",
      schema: { type: "string", enum: [method.name] },
    };
    const parameters = Object.entries(shapeOf(method.params)).map(([param, schema]) =>
      queryParameter(param, schema),
    );
    const result = enveloped(jsonSchemaOf(method.result, "output"));
    const get = operation(`service_${method.name}`, "Engine", method.summary, [name, ...parameters], {
      200: jsonAnswer("The result, or the error", { oneOf: [result, reference("ControlFailure")] }),
    });
    return [`/webui/api/service#${method.name}`, { get }] as const;
  });
  return Object.fromEntries(paths);
}

function operation(
  operationId: string,
  tag: string,
  summary: string,
  parameters: readonly OpenApiParameter[],
  responses: Readonly<Record<string, OpenApiAnswer>>,
): OpenApiOperation {
  return { operationId, tags: [tag], summary, security: [], "x-remote": true, parameters, responses };
}

function inPath(name: string, description: string): OpenApiParameter {
  return { name, in: "path", required: true, description, schema: { type: "string" } };
}

function enveloped(result: unknown) {
  return { type: "object", properties: { result, error: { type: "null" } }, required: ["result", "error"] };
}

const refusals = {
  default: {
    description: "What went wrong, with a status of the table of errors",
    content: { "text/plain": { schema: { type: "string" } } },
  },
};
