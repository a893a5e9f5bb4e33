import { z } from "zod";
import { listedItemSchema } from "../present-item.ts";
import { type ControlMethod, controlMethod } from "./method.ts";
import { bool, integer } from "./params.ts";
import { playlistAnswer } from "./playlist-answer.ts";
import { name, owner, PRIVATE, said } from "./playlist-params.ts";

const count = integer
  .refine((value) => value === undefined || value >= 0, "expected a whole number from 0 on")
  .meta({ type: "integer", minimum: 0 });

const params = z.object({
  owner,
  name: name.describe("A part of the title, whatever its case and accents"),
  category: name,
  subcategory: name.describe("A subcategory, or a tag"),
  is_favorite: bool.describe("1: favourites only"),
  external_playlist_id: integer.describe(
    "What came from this external playlist; -1: what did not come from any",
  ),
  sort: bool.describe("1: by title; else in the order in which they were added"),
  offset: count.describe("So many are left out at first"),
  limit: count.describe("At most so many; all where it is absent"),
});

/**
 * `playlist_get`, with the filters that deployed clients send.
 *
 * CHOICE(playlist-filters): `is_favorite=0` and `sort=0` are as if they were not given, as `favorites=0` is in the export.
 * `sort=1` sorts by title, else the order in which items came. Without `limit` all items are told, however many;
 * `limit=0` tells only how many there are.
 */
export const playlistGet: ControlMethod = controlMethod({
  name: "playlist_get",
  summary: "Lists the items of the playlist",
  ...PRIVATE,
  params,
  result: z.object({ total_items: z.int(), playlist: z.array(listedItemSchema) }),
  run(params, call) {
    const { owner, name, category, subcategory, offset, limit } = params;
    const query = said({
      owner,
      name,
      category,
      subcategory,
      externalPlaylistId: params.external_playlist_id,
      isFavorite: params.is_favorite || undefined,
      offset,
      limit,
    });
    return playlistAnswer({ ...query, sort: params.sort ? "title" : "added" }, call);
  },
});
