import { Hono } from "hono";
import { z } from "zod";
import type { Engine } from "../src/engine/engine.ts";
import type { Item, Items } from "../src/library/contract.ts";
import type { Library } from "../src/library/library.ts";
import { baseUrl } from "./access.ts";
import { queryParameters } from "./control/form.ts";
import { bool, integer, parameterError, text } from "./control/params.ts";
import { success } from "./envelope.ts";
import type { House, RouteEnv } from "./house.ts";
import { presentIcons } from "./present-item.ts";

/** What one search looks through at most, besides what it finds; nobody turns so many pages. */
const MAX_FOUND = 2_000;
const MAX_PAGE_SIZE = 200;
const MAX_QUERY = 200;
/** Words of a query that count; each costs a look through the list. */
const MAX_WORDS = 8;

/** A whole number of a page; not said where it is not given. */
function pageNumber(least: number, most: number) {
  const expected = `expected ${least} to ${most}`;
  return integer
    .refine((value) => value === undefined || (value >= least && value <= most), expected)
    .meta({ type: "integer", minimum: least, maximum: most });
}

/** The parameters of `/search` and of the method of that name. */
export const searchParams = z.object({
  query: text
    .refine((value) => (value?.length ?? 0) <= MAX_QUERY, `expected at most ${MAX_QUERY} characters`)
    .meta({ type: "string", maxLength: MAX_QUERY }),
  category: text.describe("A category, subcategory or tag of items"),
  page: pageNumber(0, 1_000_000).describe("From 0 on"),
  page_size: pageNumber(1, MAX_PAGE_SIZE).describe("10 unless given"),
  group_by_channels: bool.describe("0: items directly in results"),
});

const foundSchema = z.object({
  infohash: z.string(),
  name: z.string(),
  channel_id: z.int(),
  bitrate: z.int(),
  categories: z.array(z.string()),
  languages: z.array(z.string()),
  countries: z.array(z.string()),
  availability: z.number(),
  availability_updated_at: z.int(),
  status: z.literal([1, 2]),
  in_playlist: z.boolean(),
});

const channelSchema = z.object({
  name: z.string(),
  icons: z.array(z.object({ url: z.string(), type: z.string() })),
  items: z.array(foundSchema),
});

/** What a search answers. */
export const searchSchema = z.object({
  total: z.int(),
  results: z.array(z.union([channelSchema, foundSchema])),
  time: z.number(),
});

type Found = z.output<typeof foundSchema>;
type Channel = z.output<typeof channelSchema>;

/** `/search`, for channel sources of players; no token, but not for pages of other sites. */
export function createSearchRoutes(house: House & { readonly library: Library }): Hono<RouteEnv> {
  const app = new Hono<RouteEnv>();
  app.get("/search", async (c) => {
    const params = searchParams.safeParse(queryParameters(c.req.raw));
    if (!params.success) throw parameterError(params.error);
    return success(c, "result", await search(params.data, house, baseUrl(c)));
  });
  return app;
}

/**
 * Searches what is known here: enabled items of the playlist that a swarm plays and whose infohash is known, and the
 * transport files that are kept.
 *
 * CHOICE(search): a name is found where it has all words of the query; an empty query finds everything. At most 2,000 items are
 * looked at. What is connected to peers now is available (1, status 2); of all else nobody knows (0, status 1), and
 * `availability_updated_at` is when the item was last changed.
 */
export async function search(
  params: z.output<typeof searchParams>,
  { library, engine }: { readonly library: Pick<Library, "items">; readonly engine: Engine },
  base: string,
): Promise<z.output<typeof searchSchema>> {
  const began = performance.now();
  const channels = new Map<string, Channel>();
  const known = new Set<string>();
  const open = openSwarms(engine);
  const add = (key: string, channel: Omit<Channel, "items">, found: Found) => {
    if (known.has(found.infohash)) return;
    known.add(found.infohash);
    const there = channels.get(key) ?? { ...channel, items: [] };
    there.items.push(found);
    channels.set(key, there);
  };
  for (const item of await itemsNamed(library.items, params.query ?? "")) {
    const { infohash } = item.content;
    if (infohash === null || !isOfCategory(item, params.category)) continue;
    const figures = library.items.figures(item);
    const channel = { name: item.displayTitle || item.title, icons: presentIcons(figures, base) };
    add(figures.hash, channel, presentFound(item, infohash, open));
  }
  const kept =
    params.category === undefined ? await engine.inspect.search(params.query ?? "", MAX_FOUND) : [];
  for (const { name, infohash } of kept)
    add(`kept ${infohash}`, { name, icons: [] }, presentKept(name, infohash, open));
  const isGrouped = params.group_by_channels ?? true;
  const all = isGrouped ? [...channels.values()] : [...channels.values()].flatMap(({ items }) => items);
  const { page = 0, page_size = 10 } = params;
  const results = all.slice(page * page_size, (page + 1) * page_size);
  return { total: all.length, results, time: Math.round(performance.now() - began) / 1000 };
}

/** Enabled items that a swarm plays and whose title has all words, by title. The longest word leaves least to look at. */
async function itemsNamed(items: Items, query: string): Promise<readonly Item[]> {
  const words = query.split(/\s+/).filter((word) => word !== "");
  const [first, ...others] = words.sort((a, b) => b.length - a.length).slice(0, MAX_WORDS);
  const bounds = { isEnabled: true, sort: "title", limit: MAX_FOUND } as const;
  let { items: found } = await items.query(first === undefined ? bounds : { ...bounds, name: first });
  for (const name of others) {
    const ids = found.map(({ id }) => id);
    found = ids.length === 0 ? [] : (await items.query({ ...bounds, name, ids })).items;
  }
  return found.filter(({ content }) => content.transport === "bt");
}

function isOfCategory(item: Item, category: string | undefined): boolean {
  return category === undefined || categoriesOf(item).includes(category);
}

/** The categories of networks are kept as tags. */
function categoriesOf({ category, subcategory, tags }: Item): string[] {
  return [...new Set([category ?? "", subcategory, ...tags])].filter((name) => name !== "");
}

/** The swarms that are connected now, or held whole. */
function openSwarms(engine: Engine): ReadonlySet<string> {
  const isAvailable = ({ figures }: ReturnType<Engine["figures"]>["transfers"][number]) =>
    figures.connectedPeers > 0 || (figures.pieceCount > 0 && figures.piecesHeld === figures.pieceCount);
  return new Set(
    engine
      .figures()
      .transfers.filter(isAvailable)
      .map(({ infohash }) => infohash),
  );
}

/** An unknown bitrate is 0, an unknown channel -1. */
const UNKNOWN = { channel_id: -1, bitrate: 0, categories: [], languages: [], countries: [] };

function presentFound(item: Item, infohash: string, open: ReadonlySet<string>): Found {
  return {
    ...UNKNOWN,
    infohash,
    name: item.title,
    categories: categoriesOf(item),
    languages: [...(item.languages ?? [])],
    countries: [...(item.countries ?? [])],
    ...availability(open.has(infohash), item.updatedAt),
    in_playlist: true,
  };
}

function presentKept(name: string, infohash: string, open: ReadonlySet<string>): Found {
  return { ...UNKNOWN, infohash, name, ...availability(open.has(infohash), 0), in_playlist: false };
}

function availability(isOpen: boolean, otherwise: number) {
  const now = Math.floor(Date.now() / 1000);
  return {
    availability: isOpen ? 1 : 0,
    availability_updated_at: isOpen ? now : otherwise,
    status: isOpen ? (2 as const) : (1 as const),
  };
}
