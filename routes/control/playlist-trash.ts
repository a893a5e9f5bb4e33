import { z } from "zod";
import { itemSchema } from "../http/present-item.ts";
import { deleteGroup } from "./media-group.ts";
import { type ControlMethod, controlMethod, okResult, PRIVATE } from "./method.ts";
import { integer, integerList, required } from "./params.ts";
import { trashList } from "./playlist-get.ts";
import { itemParams, nonEmptyIds, owner } from "./playlist-params.ts";

/**
 * Deleting, restoring, and the trash (interface: States and transitions, Playlist item).
 *
 * CHOICE(owners): `owner` is required unless the interface calls it optional; if it is absent there, the call applies to
 * all owners.
 */
export const trashMethods: readonly ControlMethod[] = [
  controlMethod({
    name: "playlist_delete_item",
    summary: "Moves an item to the trash",
    ...PRIVATE,
    params: z.object(itemParams),
    result: okResult,
    async run({ id, use_media_groups }, { library }) {
      await deleteGroup(library.items, id, use_media_groups ?? false);
      return "ok";
    },
  }),
  controlMethod({
    name: "playlist_delete_items",
    summary: "Moves several items to the trash",
    ...PRIVATE,
    params: z.object({ owner: required(owner), ids: integerList }),
    result: okResult,
    async run({ owner, ids }, { library }) {
      await library.items.delete(nonEmptyIds(ids), owner);
      return "ok";
    },
  }),
  controlMethod({
    name: "playlist_restore_item",
    summary: "Restores an item from the trash",
    ...PRIVATE,
    params: z.object({ owner: required(owner), id: required(integer) }),
    result: okResult,
    async run({ owner, id }, { library }) {
      await library.items.restore(id, owner);
      return "ok";
    },
  }),
  controlMethod({
    name: "playlist_trash_get",
    summary: "Lists the items in the trash",
    ...PRIVATE,
    params: z.object({ owner: required(owner) }),
    result: z.object({ data: z.array(itemSchema) }),
    run: ({ owner }, call) => trashList(owner, call),
  }),
  controlMethod({
    name: "playlist_trash_clear",
    summary: "Permanently deletes the items in the trash",
    ...PRIVATE,
    params: z.object({ owner }),
    result: okResult,
    async run({ owner }, { library }) {
      await library.items.clearTrash(owner);
      return "ok";
    },
  }),
];

/** `playlist_clear`, separate because the interface lists it after `playlist_get`. */
export const playlistClear: ControlMethod = controlMethod({
  name: "playlist_clear",
  summary: "Permanently deletes all active items of an owner",
  ...PRIVATE,
  params: z.object({ owner: required(owner) }),
  result: okResult,
  async run({ owner }, { library }) {
    await library.items.clear(owner);
    return "ok";
  },
});
