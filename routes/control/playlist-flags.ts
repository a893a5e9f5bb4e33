import { z } from "zod";
import type { ItemChange } from "../../src/library/contract.ts";
import { changeGroup, changeMany } from "./media-group.ts";
import { type ControlMethod, controlMethod } from "./method.ts";
import { bool, integerList, required } from "./params.ts";
import { itemChoice, owner, PRIVATE, someOf } from "./playlist-params.ts";

const flagParams = z.object({ ...itemChoice, value: required(bool), owner });

function flagMethod(name: string, summary: string, change: (value: boolean) => ItemChange): ControlMethod {
  return controlMethod({
    name,
    summary,
    ...PRIVATE,
    params: flagParams,
    result: z.literal(true),
    async run({ id, value, owner, use_media_groups }, { library }) {
      await changeGroup(library.items, id, change(value), { wholeGroup: use_media_groups ?? false, owner });
      return true;
    },
  });
}

/** The flags of items (interface: States and transitions, Playlist item). */
export const flagMethods: readonly ControlMethod[] = [
  flagMethod("playlist_item_set_favorite", "Makes an item a favourite, or none", (isFavorite) => ({
    isFavorite,
  })),
  flagMethod("playlist_item_set_enabled", "Enables or disables an item", (isEnabled) => ({ isEnabled })),
  controlMethod({
    name: "playlist_items_set_enabled",
    summary: "Enables or disables many items; locked ones stay as they are",
    ...PRIVATE,
    params: z.object({
      ids: integerList,
      value: required(bool),
      use_media_groups: itemChoice.use_media_groups,
      owner,
    }),
    result: z.literal(true),
    async run({ ids, value, owner, use_media_groups }, { library }) {
      const choice = { wholeGroup: use_media_groups ?? false, owner };
      await changeMany(library.items, someOf(ids), { isEnabled: value }, choice);
      return true;
    },
  }),
  flagMethod("playlist_item_set_locked", "Locks or unlocks an item", (isLocked) => ({ isLocked })),
  controlMethod({
    name: "playlist_item_set_auto_search",
    summary: "Switches the auto search of an item",
    ...PRIVATE,
    params: z.object({ id: itemChoice.id, value: required(bool), owner: required(owner) }),
    result: z.literal("ok"),
    async run({ id, value, owner }, { library }) {
      await changeGroup(library.items, id, { autoSearch: value }, { wholeGroup: false, owner });
      // CHOICE(auto-search-answer): the interface says true and shows 'ok'. Deployed clients were written against what came.
      return "ok";
    },
  }),
];
