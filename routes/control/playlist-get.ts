import { z } from "zod";
import type { UnixSeconds } from "../../src/base/time.ts";
import { encodeUtf8 } from "../../src/base/utf8.ts";
import type { Item, ItemQuery, ItemReader } from "../../src/library/contract.ts";
import type { Library } from "../../src/library/library.ts";
import { listedItemSchema, presentItem, presentListedItem } from "../http/present-item.ts";
import { spacedJson } from "../http/responses.ts";
import { shownProgramme } from "./guide.ts";
import { type ControlCall, type ControlMethod, controlMethod, PRIVATE } from "./method.ts";
import { bool, integer, oneOf } from "./params.ts";
import { name, omitUndefined, owner, pageParams, titlePart } from "./playlist-params.ts";
import { search, searchParams, searchSchema } from "./search.ts";

/** Up to this many items are sent at once, with a length; a longer list is streamed while it is read. */
const MAX_BUFFERED_ITEMS = 500;

const DAY_SECONDS = 86_400;
/** Programmes of an item on one day: one in ten minutes. */
const MAX_DAY = 150;

const params = z.object({
  owner,
  name: titlePart,
  category: name,
  subcategory: name.describe("A subcategory or a tag"),
  is_favorite: bool.describe("1: only favourites"),
  external_playlist_id: integer.describe(
    "Only items of this external playlist; -1: only items of no external playlist",
  ),
  sort: bool.describe("1: by title; default: in the order in which items were added"),
  sort_by: oneOf(["status"]).describe(
    "status: channels that played in their last visit first, dead ones last; replaces sort",
  ),
  ...pageParams,
  show_epg: bool.describe("1: adds the present programme of each item and the next one"),
  epg_from: integer.describe("UNIX time: adds all programmes of each item that end later, instead of two"),
  epg_to: integer.describe("UNIX time: programmes that start earlier; default: a day after epg_from"),
});

/**
 * `playlist_get`, with the filters that deployed clients send.
 *
 * CHOICE(playlist-filters): `is_favorite=0` and `sort=0` count as absent, like `favorites=0` in the export. `sort=1` sorts
 * by title, otherwise items keep the order in which they were added. Without `limit` all items are returned; `limit=0`
 * returns only their number.
 */
export const playlistGet: ControlMethod = controlMethod({
  name: "playlist_get",
  summary: "Lists the items of the playlist",
  ...PRIVATE,
  params,
  result: z.object({
    total_items: z.int(),
    playlist: z.array(listedItemSchema.extend({ epg: z.array(shownProgramme).optional() })),
  }),
  async run(params, call) {
    const { owner, name, category, subcategory, offset = 0, limit = Number.POSITIVE_INFINITY } = params;
    const query: ItemQuery = {
      ...omitUndefined({
        owner,
        name,
        category,
        subcategory,
        externalPlaylistId: params.external_playlist_id,
        isFavorite: params.is_favorite || undefined,
        offset: params.offset,
        limit: params.limit,
      }),
      sort: params.sort ? "title" : "added",
    };
    const { items } = call.library;
    const { epg_from: from, epg_to: to } = params;
    const epg = async (item: Item) => {
      if (from === undefined) return [...(await call.library.guide.nowAndNext(item))];
      const last = Math.min(to ?? from + DAY_SECONDS, from + DAY_SECONDS);
      const programmes = call.library.guide.programmes(
        item,
        from as UnixSeconds,
        last as UnixSeconds,
        MAX_DAY,
      );
      return (await programmes).map(({ start, stop, title, description }) => ({
        start,
        stop,
        title,
        description,
      }));
    };
    const present = async (item: Item) => ({
      ...presentListedItem(item, items.figures(item), call.base, call.library.healthOf(item)),
      ...(params.show_epg && { epg: await epg(item) }),
    });
    if (params.sort_by === "status") {
      const { total, page } = await byStatus(call.library, query);
      return { total_items: total, playlist: await Promise.all(page.map(present)) };
    }
    const page = await items.query({ ...query, limit: Math.min(limit, MAX_BUFFERED_ITEMS) });
    if (page.items.length >= Math.min(limit, page.total - offset))
      return { total_items: page.total, playlist: await Promise.all(page.items.map(present)) };
    return streamedList(call, query, `{"total_items": ${page.total}, "playlist": [`, present);
  },
});

/** Alive channels first; those that were never visited are before the dead ones. */
const STATUS_ORDER = ["alive", "weak", undefined, "dead"] as const;

/** Sorts the matches by the status of their content, then by title. Returns at most {@link MAX_BUFFERED_ITEMS} of them. */
async function byStatus(
  { items, health }: Pick<Library, "items" | "health">,
  { offset = 0, limit = Number.POSITIVE_INFINITY, ...query }: ItemQuery,
): Promise<{ total: number; page: Item[] }> {
  const all = await items.outline({ ...query, sort: "title" });
  const sorted = STATUS_ORDER.flatMap((status) =>
    all.filter(({ content }) => health.get(content)?.status === status),
  );
  const ids = sorted.slice(offset, offset + Math.min(limit, MAX_BUFFERED_ITEMS)).map(({ id }) => id);
  if (ids.length === 0) return { total: all.length, page: [] };
  const found = new Map((await items.query({ ids })).items.map((item) => [item.id, item]));
  return { total: all.length, page: ids.flatMap((id) => found.get(id) ?? []) };
}

/** Returns the result of `playlist_trash_get`. */
export async function trashList(owner: string, call: ControlCall): Promise<unknown> {
  const query: ItemQuery = { state: "trash", sort: "added", owner };
  const { items } = call.library;
  const present = (item: Item) => presentItem(item, items.figures(item));
  const page = await items.query({ ...query, limit: MAX_BUFFERED_ITEMS });
  if (page.items.length === page.total) return { data: page.items.map(present) };
  return streamedList(call, query, '{"data": [', present);
}

/** Builds a response that reads items only when the client pulls: 100,000 items are 100 MB of JSON. */
function streamedList(
  { library, context }: ControlCall,
  query: ItemQuery,
  head: string,
  present: (item: Item) => unknown,
): Response {
  let reader: ItemReader | undefined;
  let isFirst = true;
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        let chunk = reader === undefined ? `{"result": ${head}` : "";
        reader ??= library.items.read(query);
        const items = await reader.next();
        for (const item of items) {
          chunk += `${isFirst ? "" : ", "}${spacedJson(await present(item))}`;
          isFirst = false;
        }
        controller.enqueue(encodeUtf8(items.length === 0 ? `${chunk}]}, "error": null}` : chunk));
        if (items.length === 0) controller.close();
      },
    },
    { highWaterMark: 0 },
  );
  return context.body(body, 200, { "content-type": "application/json", "cache-control": "no-store" });
}

/** `search`: the same as `/search`, and also finds items that are in no swarm, such as links to web servers. */
export const playlistSearch: ControlMethod = controlMethod({
  name: "search",
  summary: "Searches the playlist and the stored transport files",
  ...PRIVATE,
  isExtra: true,
  params: searchParams,
  result: searchSchema,
  run: (params, { dependencies, library, base }) =>
    search(params, { library, engine: dependencies.engine }, base, "all"),
});
