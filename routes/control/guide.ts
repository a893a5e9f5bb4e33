import { z } from "zod";
import { SluiceError } from "../../src/base/errors.ts";
import type { UnixSeconds } from "../../src/base/time.ts";
import type { Item } from "../../src/library/contract.ts";
import type { GuideChannel, Programme } from "../../src/library/guide/guide-contract.ts";
import type { Library } from "../../src/library/library.ts";
import { controlMethod, okResult, PRIVATE } from "./method.ts";
import { integer, required, text } from "./params.ts";

/** The most programmes of one answer: a channel's two weeks have about 700. */
const MAX_PROGRAMMES = 1_000;
const DAY_SECONDS = 86_400;

/** A programme as lists show it. */
export const shownProgramme = z.object({
  start: z.int().describe("UNIX time"),
  stop: z.int(),
  title: z.string(),
  description: z.string(),
});

const programmeResult = shownProgramme.extend({
  subtitle: z.string(),
  categories: z.array(z.string()),
  icon: z.string(),
  episode: z.string(),
});

const channelResult = z.object({
  key: z.string().describe("Identifies the channel among all guides"),
  id: z.string().describe("The channel's id in its guide"),
  names: z.array(z.string()),
});

/** Programme guides: their sources, the programmes of an item, and which channel of a guide an item is. */
export const guideMethods = [
  controlMethod({
    name: "get_epg_by_item_id",
    summary: "Returns the programmes of an item, from the programme guides",
    isExtra: true,
    ...PRIVATE,
    params: z.object({
      id: required(integer).describe("The item"),
      min_stop: integer.describe("UNIX time: programmes that end later; default: now"),
      max_start: integer.describe("UNIX time: programmes that start earlier; default: a day after min_stop"),
    }),
    result: z.array(
      programmeResult.extend({
        kept_seconds: z.int().describe("How much of it is kept for catch-up, and can be played"),
      }),
    ),
    async run({ id, min_stop, max_start }, { library, dependencies: { catchUp } }) {
      const item = await itemOf(library, id);
      const from = (min_stop ?? unixNow()) as UnixSeconds;
      const to = (max_start ?? from + DAY_SECONDS) as UnixSeconds;
      const found = await library.guide.programmes(item, from, to, MAX_PROGRAMMES);
      return found.map((programme) => {
        const span = { startMs: 1000 * programme.start, endMs: 1000 * programme.stop };
        const kept = catchUp?.spans(item, span) ?? [];
        const keptMs = kept.reduce((sum, { startMs, endMs }) => sum + endMs - startMs, 0);
        return { ...presentProgramme(programme), kept_seconds: Math.round(keptMs / 1000) };
      });
    },
  }),
  controlMethod({
    name: "search_epg",
    summary: "Searches the present and later programmes of the playlist's channels",
    isExtra: true,
    ...PRIVATE,
    params: z.object({
      query: required(text).describe("A part of the title or subtitle; case and accents are ignored"),
    }),
    result: z.object({
      programmes: z
        .array(
          programmeResult.extend({
            item_id: z.int().describe("The item that shows the programme"),
            item_title: z.string(),
          }),
        )
        .describe("The earliest first, at most 100"),
      is_complete: z.boolean().describe("False if there are more, or if the search took too long"),
    }),
    async run({ query }, { library }) {
      const { found, isComplete } = await library.searchProgrammes(query);
      return {
        programmes: found.map(({ item, programme }) => ({
          ...presentProgramme(programme),
          item_id: item.id,
          item_title: item.displayTitle || item.title,
        })),
        is_complete: isComplete,
      };
    },
  }),
  controlMethod({
    name: "epg_source_get_list",
    summary: "Lists the programme guides: those that the user added and those that playlists name",
    isExtra: true,
    ...PRIVATE,
    params: z.object({}),
    result: z.array(
      z.object({
        id: z.int(),
        url: z.string(),
        origin: z.enum(["user", "list"]),
        last_update: z.int().describe("UNIX time; 0: never"),
        channels: z.int(),
        programmes: z.int(),
        problem: z.string().nullable().describe("Why the last refresh failed; earlier programmes are kept"),
      }),
    ),
    run: async (_, { library }) =>
      library.guide
        .sources()
        .map(({ id, url, origin, lastUpdate, channelCount, programmeCount, problem }) => ({
          id,
          url,
          origin,
          last_update: lastUpdate,
          channels: channelCount,
          programmes: programmeCount,
          problem,
        })),
  }),
  controlMethod({
    name: "epg_source_add",
    summary: "Adds a programme guide (XMLTV, also compressed with gzip) and fetches it in the background",
    isExtra: true,
    ...PRIVATE,
    params: z.object({ url: required(text).describe("http or https") }),
    result: z.object({ id: z.int() }),
    run: async ({ url }, { library, allowPrivateUrls }) => ({
      id: await library.guide.addSource(url, { allowPrivateUrls }),
    }),
  }),
  controlMethod({
    name: "epg_source_delete",
    summary: "Removes a programme guide with its programmes",
    isExtra: true,
    ...PRIVATE,
    params: z.object({ id: required(integer) }),
    result: okResult,
    async run({ id }, { library }) {
      await library.guide.removeSource(id);
      return "ok";
    },
  }),
  controlMethod({
    name: "epg_source_update",
    summary: "Refreshes all programme guides in the background",
    isExtra: true,
    ...PRIVATE,
    params: z.object({}),
    result: z.object({ task_id: z.int() }),
    run: async (_, { library }) => ({ task_id: library.guide.refresh() }),
  }),
  controlMethod({
    name: "get_epg_match",
    summary: "Returns the guide's channel of an item, why it was chosen, and similar channels",
    isExtra: true,
    ...PRIVATE,
    params: z.object({
      id: required(integer).describe("The item"),
      query: text.describe("Searches for a channel by this name instead of the item's"),
    }),
    result: z.object({
      channel: channelResult.nullable(),
      reason: z.enum(["chosen", "id", "name", "similar"]).nullable(),
      candidates: z.array(channelResult),
    }),
    async run({ id, query }, { library }) {
      const item = await itemOf(library, id);
      const match = library.guide.match(item);
      return {
        channel: match ? presentChannel(match.channel) : null,
        reason: match?.reason ?? null,
        candidates: library.guide.candidates(item, query ?? "").map(presentChannel),
      };
    },
  }),
  controlMethod({
    name: "get_epg_review",
    summary:
      "Lists the channels for which no channel of the guides fits for certain, or only one with a similar name",
    isExtra: true,
    ...PRIVATE,
    params: z.object({}),
    result: z.object({
      channels: z
        .array(
          z.object({
            item_id: z.int(),
            title: z.string(),
            channel: channelResult
              .nullable()
              .describe("Used because its name is similar; null: none is used"),
            candidates: z.array(channelResult).describe("The most similar ones, at most 3"),
          }),
        )
        .describe("At most 100, one item of each channel"),
      count: z.int().describe("The number of all such channels"),
    }),
    async run(_, { library }) {
      const { channels, count } = await library.reviewGuide();
      return {
        channels: channels.map(({ item, used, candidates }) => ({
          item_id: item.id,
          title: item.displayTitle || item.title,
          channel: used ? presentChannel(used) : null,
          candidates: candidates.map(presentChannel),
        })),
        count,
      };
    },
  }),
  controlMethod({
    name: "set_epg_match",
    summary: "Chooses the guide's channel of an item and of every other source of the same channel",
    isExtra: true,
    ...PRIVATE,
    params: z.object({
      id: required(integer).describe("The item"),
      channel: required(text).describe("The key of a channel; none: no guide; auto: find it by name"),
    }),
    result: okResult,
    async run({ id, channel }, { library }) {
      const item = await itemOf(library, id);
      const key = channel === "auto" ? undefined : channel === "none" ? null : channel;
      await library.guide.choose(item, key);
      return "ok";
    },
  }),
];

/** Returns an item. Rejects with `unknown_item`. */
export async function itemOf(library: Library, id: number): Promise<Item> {
  const item = await library.items.get(id);
  if (item === undefined) throw new SluiceError("unknown_item", String(id));
  return item;
}

function presentProgramme(programme: Programme): z.output<typeof programmeResult> {
  return { ...programme, categories: [...programme.categories] };
}

function presentChannel({ key, id, names }: GuideChannel): z.output<typeof channelResult> {
  return { key, id, names: [...names] };
}

/** Returns the time of day. */
export function unixNow(): UnixSeconds {
  return Math.floor(Date.now() / 1000) as UnixSeconds;
}
