import { z } from "zod";
import type { ItemChange } from "../../src/library/contract.ts";
import { changeGroup, changeMany } from "./media-group.ts";
import { type ControlMethod, controlMethod, okResult, PRIVATE } from "./method.ts";
import { bool, integerList, required } from "./params.ts";
import { itemParams, nonEmptyIds, owner } from "./playlist-params.ts";

const flagParams = z.object({ ...itemParams, value: required(bool), owner });

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
  flagMethod("playlist_item_set_favorite", "Marks or unmarks an item as a favourite", (isFavorite) => ({
    isFavorite,
  })),
  flagMethod("playlist_item_set_enabled", "Enables or disables an item", (isEnabled) => ({ isEnabled })),
  controlMethod({
    name: "playlist_items_set_enabled",
    summary: "Enables or disables several items",
    ...PRIVATE,
    params: z.object({
      ids: integerList,
      value: required(bool),
      use_media_groups: itemParams.use_media_groups,
      owner,
    }),
    result: z.literal(true),
    async run({ ids, value, owner, use_media_groups }, { library }) {
      const choice = { wholeGroup: use_media_groups ?? false, owner };
      await changeMany(library.items, nonEmptyIds(ids), { isEnabled: value }, choice);
      return true;
    },
  }),
  flagMethod("playlist_item_set_locked", "Locks or unlocks an item", (isLocked) => ({ isLocked })),
  controlMethod({
    name: "playlist_item_set_auto_search",
    summary: "Switches auto search of an item on or off",
    ...PRIVATE,
    params: z.object({ id: itemParams.id, value: required(bool), owner: required(owner) }),
    result: okResult,
    async run({ id, value, owner }, { library }) {
      await changeGroup(library.items, id, { autoSearch: value }, { wholeGroup: false, owner });
      // CHOICE(auto-search-answer): the interface specifies true but shows 'ok', which deployed clients expect.
      return "ok";
    },
  }),
];
