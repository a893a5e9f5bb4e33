import { z } from "zod";
import { itemSchema } from "../present-item.ts";
import { deleteGroup, refuseWhereLocked } from "./media-group.ts";
import { type ControlMethod, controlMethod } from "./method.ts";
import { integer, integerList, required } from "./params.ts";
import { trashAnswer } from "./playlist-answer.ts";
import { itemChoice, owner, PRIVATE, someOf } from "./playlist-params.ts";

const ok = z.literal("ok");

/**
 * The trash, and what is deleted for good (interface: States and transitions, Playlist item).
 *
 * CHOICE(owners): an owner must be given where the interface does not call it optional; where it does, all owners are meant.
 */
export const trashMethods: readonly ControlMethod[] = [
  controlMethod({
    name: "playlist_delete_item",
    summary: "Puts an item into the trash",
    ...PRIVATE,
    params: z.object(itemChoice),
    result: ok,
    async run({ id, use_media_groups }, { library }) {
      await deleteGroup(library.items, id, use_media_groups ?? false);
      return "ok";
    },
  }),
  controlMethod({
    name: "playlist_delete_items",
    summary: "Puts many items into the trash; locked ones stay",
    ...PRIVATE,
    params: z.object({ owner: required(owner), ids: integerList }),
    result: ok,
    async run({ owner, ids }, { library }) {
      const named = someOf(ids);
      const count = await library.items.delete(named, owner);
      if (count === 0) await refuseWhereLocked(library.items, named);
      return "ok";
    },
  }),
  controlMethod({
    name: "playlist_restore_item",
    summary: "Takes an item out of the trash",
    ...PRIVATE,
    params: z.object({ owner: required(owner), id: required(integer) }),
    result: ok,
    async run({ owner, id }, { library }) {
      await library.items.restore(id, owner);
      return "ok";
    },
  }),
  controlMethod({
    name: "playlist_trash_get",
    summary: "Lists what is in the trash",
    ...PRIVATE,
    params: z.object({ owner: required(owner) }),
    result: z.object({ data: z.array(itemSchema) }),
    run: ({ owner }, call) => trashAnswer({ state: "trash", sort: "added", owner }, call),
  }),
  controlMethod({
    name: "playlist_trash_clear",
    summary: "Deletes what is in the trash for good",
    ...PRIVATE,
    params: z.object({ owner }),
    result: ok,
    async run({ owner }, { library }) {
      await library.items.clearTrash(owner);
      return "ok";
    },
  }),
];

/** `playlist_clear`, which stands behind the list in the interface's table. */
export const clearMethod: ControlMethod = controlMethod({
  name: "playlist_clear",
  summary: "Deletes all active items of an owner for good, but for locked ones",
  ...PRIVATE,
  params: z.object({ owner: required(owner) }),
  result: ok,
  async run({ owner }, { library }) {
    await library.items.clear(owner);
    return "ok";
  },
});
