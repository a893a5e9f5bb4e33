import { controlPaths } from "./openapi-control.ts";
import { listPaths } from "./openapi-lists.ts";
import type { JsonSchema, OpenApiPath } from "./openapi-parts.ts";
import { playbackPaths } from "./openapi-playback.ts";
import { OPENAPI_SCHEMAS } from "./openapi-schemas.ts";

/** The whole interface as OpenAPI 3.1. */
export interface OpenApiDocument {
  readonly openapi: "3.1.0";
  readonly info: { readonly title: string; readonly version: string; readonly description: string };
  readonly servers: readonly { readonly url: string }[];
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, OpenApiPath>>;
  readonly components: {
    readonly securitySchemes: Readonly<Record<string, JsonSchema>>;
    readonly schemas: Readonly<Record<string, JsonSchema>>;
  };
}

const TAGS = [
  ["Playback", "Starting content, and the URLs of a session"],
  ["Service", "The engine, players, and what content is"],
  ["Playlist", "The user's items"],
  ["External playlists", "Lists that are fetched from elsewhere again and again"],
  ["Accounts", "Who is signed in"],
  ["Broadcasts", "Live streams of this engine's own"],
  ["Lists", "The playlist for players, and links to it"],
  ["Engine", "What programs ask before they know the engine"],
] as const;

/** Made from the schemas by which requests are read; `docs/openapi.json` is the same text (`npm run openapi`). */
export function openApiDocument(version: string): OpenApiDocument {
  return {
    openapi: "3.1.0",
    info: {
      title: "Sluice",
      version,
      description:
        "A local gateway between a peer-to-peer network and video players. Control methods share one path and are told " +
        "apart by the parameter `method`: here their name stands behind `#` as well, which no client sends. They answer " +
        "with status 200 in any case; `docs/errors.md` lists the codes.",
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
          description: "From get_api_access_token, which only this host may ask",
        },
      },
      schemas: OPENAPI_SCHEMAS,
    },
  };
}
