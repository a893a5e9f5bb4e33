/** A JSON Schema (2020-12, as OpenAPI 3.1 uses it). */
export type JsonSchema = Readonly<Record<string, unknown>>;

const ID = "0123456789abcdef0123456789abcdef01234567";
const BASE = "http://192.168.1.5:6878";

/** Example values of members and parameters by name; all other values derive from the type. */
const BY_NAME: Readonly<Record<string, unknown>> = {
  infohash: ID,
  content_id: ID,
  id: 7,
  playlist_item_id: 7,
  task_id: 3,
  token: "0".repeat(64),
  magnet: `magnet:?xt=urn:btih:${ID}`,
  query: `sluice:?infohash=${ID}`,
  url: "https://example.com/news.m3u8",
  item_url: "https://example.com/news.m3u8",
  filename: "film.mp4",
  mime: "video/mp4",
  size: 734_003_200,
  title: "News",
  name: "News",
  owner: "_no_owner_",
  category: "tv",
  subcategory: "news",
  tags: ["news"],
  created_at: 1_767_225_600,
  updated_at: 1_767_225_600,
  last_update: 1_767_225_600,
  next_update: 1_767_247_200,
  update_interval: 21_600,
  version: "3.2.11",
  code: 3_021_100,
  platform: "linux",
  playback_url: `${BASE}/ace/r/${ID}/89abcdef0123456789abcdef01234567`,
  stat_url: `${BASE}/ace/stat/${ID}/89abcdef0123456789abcdef01234567`,
  command_url: `${BASE}/ace/cmd/${ID}/89abcdef0123456789abcdef01234567`,
  event_url: `${BASE}/ace/event/${ID}/89abcdef0123456789abcdef01234567`,
  addresses: [`${BASE}/`],
  email: "me@example.org",
  progress: 100,
};

/** Returns an example of a value with this schema; `name` is its member or parameter. Undefined if there is none. */
export function exampleOf(schema: JsonSchema, name = ""): unknown {
  if (schema.const !== undefined) return schema.const;
  if (Array.isArray(schema.enum)) return schema.enum[0];
  const choices = (schema.anyOf ?? schema.oneOf) as readonly JsonSchema[] | undefined;
  if (choices) return exampleOf(choices[0]!, name);
  const [type] = [schema.type].flat();
  const named = BY_NAME[name];
  if (named !== undefined && isOfType(named, type)) return named;
  switch (type) {
    case "object":
      return Object.fromEntries(
        Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>).map(([member, inner]) => [
          member,
          exampleOf(inner, member),
        ]),
      );
    case "array":
      return [exampleOf((schema.items ?? {}) as JsonSchema, name.replace(/s$/, ""))];
    case "integer":
    case "number":
      return Math.max(1, Number(schema.minimum ?? 1));
    case "boolean":
      return true;
    case "null":
      return null;
    case "string":
      return schema.format === "uri" ? BASE : "text";
    default:
      return undefined;
  }
}

function isOfType(value: unknown, type: unknown): boolean {
  if (type === "integer" || type === "number") return typeof value === "number";
  if (type === "array") return Array.isArray(value);
  return typeof value === type;
}
