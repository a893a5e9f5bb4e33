import { zValidator } from "@hono/zod-validator";
import { Hono } from "hono";
import { z } from "zod";
import type { Infohash } from "../../src/base/ids.ts";
import type { Engine } from "../../src/engine/engine.ts";
import type { Health } from "../../src/health/health-contract.ts";
import type { Item, ItemOutline, ItemQuery, Items } from "../../src/library/contract.ts";
import type { Library } from "../../src/library/library.ts";
import { baseUrl } from "../http/access.ts";
import type { RouteDependencies, RouteEnv } from "../http/dependencies.ts";
import { presentIcons } from "../http/present-item.ts";
import { success } from "../http/responses.ts";
import { shownProgramme } from "./guide.ts";
import { bool, integer, refuseInvalid, text } from "./params.ts";

/** The most items and transport files that one search examines; no user pages through more. */
const MAX_MATCHES = 2_000;
/** As many digits as the content in an `ItemOutline`. */
const OUTLINE_DIGITS = 16;
const MAX_PAGE_SIZE = 200;
const MAX_QUERY = 200;
/** Further words of a query are ignored: each one costs a search of the index. */
const MAX_TERMS = 8;

/** An integer from `min` to `max`. Values outside become the nearest one: deployed clients request pages of 1500 items. */
function clampedInteger(min: number, max: number) {
  return integer
    .transform((value) => (value === undefined ? undefined : Math.min(max, Math.max(min, value))))
    .meta({ type: "integer", minimum: min, maximum: max });
}

/** The parameters of `/search` and of the control method `search`. */
export const searchParams = z.object({
  query: text
    .refine((value) => (value?.length ?? 0) <= MAX_QUERY, `expected at most ${MAX_QUERY} characters`)
    .meta({ type: "string", maxLength: MAX_QUERY }),
  category: text.describe("A category, subcategory or tag"),
  page: clampedInteger(0, 1_000_000).describe("The page number, from 0"),
  page_size: clampedInteger(1, MAX_PAGE_SIZE).describe("Default 10"),
  group_by_channels: bool.describe(
    "1 (default): each result is a channel with all its items; 0: each result has one item",
  ),
  show_epg: bool.describe("1: adds the present programme of each channel and the next one"),
});

const matchSchema = z.object({
  infohash: z.string(),
  name: z.string(),
  channel_id: z.int().describe("The same for all items of a channel, and after a restart"),
  bitrate: z.int(),
  categories: z.array(z.string()),
  languages: z.array(z.string()),
  countries: z.array(z.string()),
  availability: z.number(),
  availability_updated_at: z.int(),
  status: z.literal([1, 2]),
  in_playlist: z.boolean(),
  item_id: z
    .int()
    .optional()
    .describe("The item of the playlist; only in the control method, for items without an infohash"),
});

const channelSchema = z.object({
  name: z.string(),
  icons: z.array(z.object({ url: z.string(), type: z.string() })),
  items: z.array(matchSchema),
  epg: z.array(shownProgramme).optional(),
});

/** The schema of a search result. */
export const searchSchema = z.object({
  total: z.int(),
  results: z.array(channelSchema),
  time: z.number(),
});

type Match = z.output<typeof matchSchema>;
type Channel = z.output<typeof channelSchema>;

/** Serves `/search`, for players that search for channels. It needs no token, but is closed to pages of other sites. */
export function createSearchRoutes(
  dependencies: RouteDependencies & { readonly library: Library },
): Hono<RouteEnv> {
  const app = new Hono<RouteEnv>();
  app.get("/search", zValidator("query", searchParams, refuseInvalid), async (c) =>
    success(c, "result", await search(c.req.valid("query"), dependencies, baseUrl(c))),
  );
  return app;
}

/** Which items {@link search} finds: those of a swarm whose infohash is known, or all. */
type SearchScope = "swarms" | "all";

/**
 * Searches the enabled playlist items in `scope`, and the stored transport files. `base` is the start of the icon URLs.
 * Rejects with `SluiceError`.
 *
 * CHOICE(search): a name matches if it contains every word of the query; an empty query matches every name. At most 2,000
 * items are examined. Content with connected peers is available (1, status 2). Other content has the availability, bitrate (bytes per
 * second) and time of its last visits (`--probe`), and status 2 if it played in the last one; content that was never visited has
 * 0, status 1 and the time of the item's last change.
 */
export async function search(
  params: z.output<typeof searchParams>,
  {
    library,
    engine,
  }: { readonly library: Pick<Library, "items" | "guide" | "healthOf">; readonly engine: Engine },
  base: string,
  scope: SearchScope = "swarms",
): Promise<z.output<typeof searchSchema>> {
  const startedAt = performance.now();
  const channels = new Map<string, Source[]>();
  const known = new Set<string>();
  const add = (channel: string, identity: string, source: Source) => {
    if (known.has(identity)) return;
    known.add(identity);
    const sources = channels.get(channel) ?? [];
    sources.push(source);
    channels.set(channel, sources);
  };
  for (const { id, channel, content, hasInfohash } of await matchingItems(library.items, params, scope))
    add(channel, hasInfohash ? content : `item ${id}`, id);
  const files =
    params.category === undefined ? await engine.inspect.search(params.query ?? "", MAX_MATCHES) : [];
  for (const file of files)
    add(file.infohash, library.items.contentHash(file.infohash).slice(0, OUTLINE_DIGITS), file);
  const isGrouped = params.group_by_channels ?? true;
  const grouped = [...channels];
  const single = () =>
    grouped.flatMap(([channel, sources]) =>
      sources.map((source): (typeof grouped)[number] => [channel, [source]]),
    );
  const all = isGrouped ? grouped : single();
  const { page = 0, page_size = 10 } = params;
  const shown = all.slice(page * page_size, (page + 1) * page_size);
  // Only the items of this page are read.
  const ids = shown.flatMap(([, sources]) => sources.filter((source) => typeof source === "number"));
  const items = ids.length === 0 ? [] : (await library.items.query({ ids })).items;
  const itemById = new Map(items.map((item) => [item.id, item]));
  const available = availableInfohashes(engine);
  const results: Channel[] = [];
  for (const [channel, sources] of shown) {
    const found = sources.flatMap((source) =>
      typeof source === "number" ? (itemById.get(source) ?? []) : source,
    );
    const [first] = found;
    if (first === undefined) continue; // Removed meanwhile.
    const item = "id" in first ? first : undefined;
    results.push({
      name: "id" in first ? first.displayTitle || first.title : first.name,
      icons: item ? presentIcons(library.items.figures(item), base) : [],
      items: found.map((each) => ({
        ...presentMatch(each, available, "id" in each ? library.healthOf(each) : undefined),
        channel_id: channelIdOf(channel),
      })),
      ...(params.show_epg && item && { epg: [...(await library.guide.nowAndNext(item))] }),
    });
  }
  return { total: all.length, results, time: Math.round(performance.now() - startedAt) / 1000 };
}

/** A source of a channel: the id of an item, or a stored transport file. */
type Source = number | StoredName;

/** A stored transport file whose name matches. */
interface StoredName {
  readonly name: string;
  readonly infohash: Infohash;
}

/**
 * Returns the enabled items whose title contains all terms, sorted by title. Uses only the index. The longest term, which
 * matches fewest, is searched first.
 */
async function matchingItems(
  items: Items,
  { query = "", category }: z.output<typeof searchParams>,
  scope: SearchScope,
): Promise<readonly ItemOutline[]> {
  const terms = query.split(/\s+/).filter((term) => term !== "");
  const [first, ...others] = terms.sort((a, b) => b.length - a.length).slice(0, MAX_TERMS);
  const bounds: ItemQuery = {
    isEnabled: true,
    sort: "title",
    limit: MAX_MATCHES,
    ...(scope === "swarms" && { isSwarm: true }),
    ...(category !== undefined && { label: category }),
  };
  let found = await items.outline(first === undefined ? bounds : { ...bounds, name: first });
  for (const name of others) {
    const ids = found.map(({ id }) => id);
    found = ids.length === 0 ? [] : await items.outline({ ...bounds, name, ids });
  }
  return found;
}

/** Broadcast metadata may have several categories; the library stores them as tags. */
function categoriesOf({ category, subcategory, tags }: Item): string[] {
  return [...new Set([category ?? "", subcategory, ...tags])].filter((name) => name !== "");
}

/** Returns the infohashes of transfers that have connected peers or are complete. */
function availableInfohashes(engine: Engine): ReadonlySet<string> {
  const isAvailable = ({ figures }: ReturnType<Engine["figures"]>["transfers"][number]) =>
    figures.connectedPeers > 0 || (figures.pieceCount > 0 && figures.piecesHeld === figures.pieceCount);
  return new Set(
    engine
      .figures()
      .transfers.filter(isAvailable)
      .map(({ infohash }) => infohash),
  );
}

/** Derives the positive 31-bit id of a channel from its key, which starts with 8 hexadecimal digits of a hash. */
function channelIdOf(key: string): number {
  return Number.parseInt(key.slice(0, 8), 16) >>> 1 || 1;
}

/** An unknown bitrate is 0. */
const UNKNOWN = { bitrate: 0, categories: [], languages: [], countries: [] };

function presentMatch(
  source: Item | StoredName,
  available: ReadonlySet<string>,
  health: Health | undefined,
): Omit<Match, "channel_id"> {
  if (!("id" in source)) {
    const { name, infohash } = source;
    return { ...UNKNOWN, infohash, name, ...availability(available.has(infohash), 0), in_playlist: false };
  }
  // Null for content that is not in a swarm, or whose infohash is not known yet.
  const { infohash } = source.content;
  return {
    ...UNKNOWN,
    infohash: infohash ?? "",
    name: source.title,
    bitrate: health?.last?.facts.bytesPerSecond ?? 0,
    categories: categoriesOf(source),
    languages: [...(source.languages ?? health?.last?.facts.languages ?? [])],
    countries: [...(source.countries ?? [])],
    ...availability(infohash !== null && available.has(infohash), source.updatedAt, health),
    in_playlist: true,
    ...(infohash === null && { item_id: source.id }),
  };
}

function availability(isAvailable: boolean, updatedAt: number, health?: Health) {
  const now = Math.floor(Date.now() / 1000);
  if (isAvailable) return { availability: 1, availability_updated_at: now, status: 2 as const };
  return {
    availability: health?.availability ?? 0,
    availability_updated_at: health?.checkedAt ?? updatedAt,
    status: health?.status === "alive" ? (2 as const) : (1 as const),
  };
}
