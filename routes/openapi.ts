import { controlPaths } from "./openapi-control.ts";
import type { JsonSchema } from "./openapi-examples.ts";
import { listPaths } from "./openapi-lists.ts";
import { OPENAPI_RESPONSES, type OpenApiPath, type OpenApiResponse } from "./openapi-parts.ts";
import { playbackPaths } from "./openapi-playback.ts";
import { OPENAPI_SCHEMAS } from "./openapi-schemas.ts";

/** The HTTP interface as an OpenAPI 3.1 document. */
export interface OpenApiDocument {
  readonly openapi: "3.1.0";
  readonly info: {
    readonly title: string;
    readonly version: string;
    readonly description: string;
    readonly license: { readonly name: string; readonly identifier: string };
  };
  readonly servers: readonly { readonly url: string }[];
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, OpenApiPath>>;
  readonly components: {
    readonly securitySchemes: Readonly<Record<string, JsonSchema>>;
    readonly responses: Readonly<Record<string, OpenApiResponse>>;
    readonly schemas: Readonly<Record<string, JsonSchema>>;
  };
}

const TAGS = [
  ["Playback", "Start playback, and control a session"],
  ["Service", "Engine status, access, players and content information"],
  ["Playlist", "The items of the user's playlist"],
  ["External playlists", "Playlists of other servers that the engine refreshes on an interval"],
  ["Accounts", "Sign-in and sign-out"],
  ["Broadcasts", "Live streams that this engine broadcasts"],
  ["Programme guides", "XMLTV guides, and the programmes of playlist items"],
  ["Catch-up", "Channels whose past programmes are kept"],
  ["Recordings", "Recordings of channels, which continue after a restart"],
  ["Downloads", "Content that is fetched whole and kept in the disk cache"],
  ["Watched films", "Where users stopped watching, by profile"],
  ["Settings", "The settings of the engine, its restart and its backup"],
  ["Activity", "What the engine does now: sessions and transfers"],
  ["Disk cache", "What the disk cache has of each content, and its removal"],
  ["Several engines", "Engines that share a database, and links for caches"],
  ["Lists", "The playlist for players, play links and search"],
  ["Engine", "Detection, version and diagnosis of the engine"],
] as const;

/** Builds the document from the schemas that validate requests. `npm run openapi` writes it to `docs/openapi.json`. */
export function openApiDocument(version: string): OpenApiDocument {
  return {
    openapi: "3.1.0",
    info: {
      title: "Sluice",
      version,
      description:
        "A local gateway between a peer-to-peer network and video players. Each control method is a path, " +
        "`/server/api/<method>`. `/server/api?method=<method>&api_version=3` is the same call; there `api_version` is 1 by " +
        "default, and errors are texts. Once a caller is admitted, control methods answer with status 200; " +
        "`docs/errors.md` lists the error codes. `x-public`: needs no token. `x-remote`: accepts clients of other hosts. " +
        "`x-other-pages`: accepts pages of other sites. `x-extra`: an extension of the published interface.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/" }],
    tags: TAGS.map(([name, description]) => ({ name, description })),
    paths: { ...playbackPaths(), ...controlPaths(), ...listPaths() },
    components: {
      securitySchemes: {
        token: {
          type: "apiKey",
          in: "query",
          name: "token",
          description:
            "The access token; get_api_access_token returns it to clients of the engine's own host",
        },
      },
      responses: OPENAPI_RESPONSES,
      schemas: OPENAPI_SCHEMAS,
    },
  };
}
