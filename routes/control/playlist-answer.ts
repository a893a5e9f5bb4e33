import type { Item, ItemQuery } from "../../src/library/contract.ts";
import { spacedJson } from "../envelope.ts";
import { jsonListStream } from "../json-list.ts";
import { presentItem, presentListedItem } from "../present-item.ts";
import type { ControlCall } from "./method.ts";

/** Up to so many items are answered at once, with a length; more are written while they are read. */
const MAX_PLAIN_ITEMS = 500;

/** The result of `playlist_get`. */
export async function playlistAnswer(query: ItemQuery, call: ControlCall): Promise<unknown> {
  const { items } = call.library;
  const present = (item: Item) => presentListedItem(item, items.figures(item), call.base);
  const { limit = Infinity, offset = 0 } = query;
  const page = await items.query({ ...query, limit: Math.min(limit, MAX_PLAIN_ITEMS) });
  if (page.items.length >= Math.min(limit, page.total - offset))
    return { total_items: page.total, playlist: page.items.map(present) };
  return longAnswer(call, query, `{"total_items": ${page.total}, "playlist": [`, present);
}

/** The result of `playlist_trash_get`. */
export async function trashAnswer(query: ItemQuery, call: ControlCall): Promise<unknown> {
  const { items } = call.library;
  const present = (item: Item) => presentItem(item, items.figures(item));
  const page = await items.query({ ...query, limit: MAX_PLAIN_ITEMS });
  if (page.items.length === page.total) return { data: page.items.map(present) };
  return longAnswer(call, query, '{"data": [', present);
}

/** A hundred thousand items are a hundred megabytes of JSON: they are never held, nor made in one turn of the loop. */
function longAnswer(
  { library, context }: ControlCall,
  query: ItemQuery,
  head: string,
  present: (item: Item) => unknown,
): Response {
  const body = jsonListStream({
    head: `{"result": ${head}`,
    elements: library.items.each(query),
    text: (item) => spacedJson(present(item)),
    tail: ']}, "error": null}',
  });
  return context.body(body, 200, { "content-type": "application/json", "cache-control": "no-store" });
}
