import { z } from "zod";
import { SluiceError } from "../../src/base/errors.ts";
import { itemOf } from "./guide.ts";
import { controlMethod, okResult, PRIVATE } from "./method.ts";
import { integer, integerList, required } from "./params.ts";

/** As many as a channel can have in an order. */
const MAX_LISTED = 32;

/** The methods for the order in which the sources of a channel are tried. */
export const channelSourceMethods = [
  controlMethod({
    name: "get_channel_sources",
    summary: "Lists the sources of an item's channel in the order in which they are tried",
    isExtra: true,
    ...PRIVATE,
    params: z.object({ id: required(integer).describe("The item") }),
    result: z.array(
      z.object({
        id: z.int(),
        title: z.string(),
        provider: z.string().optional().describe("The name of its external playlist"),
        status: z.enum(["alive", "weak", "dead"]).optional().describe("What visits found (--probe)"),
      }),
    ),
    async run({ id }, { library }) {
      const sources = await library.sourcesOf(await itemOf(library, id), MAX_LISTED);
      const playlists = await library.externalPlaylists.list();
      const names = new Map(playlists.map(({ id: playlist, name }) => [playlist, name]));
      return sources.map((source) => {
        const status = library.healthOf(source)?.status;
        const provider = names.get(source.externalPlaylistId);
        return {
          id: source.id,
          title: source.displayTitle || source.title,
          ...(provider && { provider }),
          ...(status && { status }),
        };
      });
    },
  }),
  controlMethod({
    name: "set_channel_sources",
    summary: "Puts sources of an item's channel first, in this order; the others follow automatically",
    isExtra: true,
    ...PRIVATE,
    params: z.object({
      id: required(integer).describe("The item"),
      ids: integerList.describe("Items of the same channel; none: automatic"),
    }),
    result: okResult,
    async run({ id, ids }, { library }) {
      const item = await itemOf(library, id);
      const group = await library.items.group(id);
      const strange = ids.find((source) => !group.includes(source));
      if (strange !== undefined)
        throw new SluiceError(
          "bad_parameter",
          `ids: item ${strange} is no source of the channel of item ${id}`,
        );
      const order = await Promise.all([...new Set(ids)].map((source) => itemOf(library, source)));
      await library.pinSources(item, order);
      return "ok";
    },
  }),
];
