import { z } from "zod";
import { channelNumberOf } from "../../src/base/channel-numbers.ts";
import type { Health } from "../../src/health/health-contract.ts";
import type { Item, ItemFigures } from "../../src/library/contract.ts";

const codes = z.array(z.string()).nullable();

/** The schema of an item (interface: Playlist item). */
export const itemSchema = z.object({
  id: z.int(),
  title: z.string(),
  display_title: z.string().nullable(),
  description: z.string(),
  poster: z.string(),
  category: z.string().nullable(),
  subcategory: z.string(),
  tags: z.array(z.string()),
  content_id: z.string().nullable(),
  infohash: z.string(),
  url: z.string().nullable(),
  content_type: z.string(),
  transport_type: z.string(),
  is_live: z.literal([0, 1, -1]),
  is_favorite: z.boolean(),
  enabled: z.boolean(),
  locked: z.boolean(),
  auto_search: z.boolean(),
  is_deleted: z.boolean(),
  is_multi_vod: z.boolean(),
  is_multi_tfile: z.boolean(),
  is_wrapped_url: z.int(),
  external_playlist_id: z.int(),
  tvg_id: z.string(),
  tvg_name: z.string(),
  tvg_logo: z.string(),
  tvg_chno: z.string().nullable().describe("The channel number that its list gives it"),
  languages: codes,
  countries: codes,
  created_at: z.int(),
  updated_at: z.int(),
});

const iconSchema = z.object({ url: z.string(), type: z.string() });

/** What visits in the background found (`--probe`). */
const healthSchema = z.object({
  status: z.enum(["alive", "weak", "dead"]),
  availability: z.number().describe("Share of the last visits in which it played"),
  checked_at: z.int(),
  problem: z.string().optional().describe("Why it did not play in the last visit"),
  start_ms: z.number().optional().describe("Time to the first media"),
  speed: z.number().optional().describe("Received bytes per second"),
  bitrate: z.number().optional().describe("Bytes per second"),
  codecs: z.array(z.string()).optional(),
  width: z.number().optional(),
  height: z.number().optional(),
  languages: z.array(z.string()).optional(),
  is_moving: z.boolean().optional().describe("False for a still picture"),
});

/** The schema of an item of `playlist_get`, with the members that `playlist_trash_get` omits. */
export const listedItemSchema = itemSchema.extend({
  icons: z.array(iconSchema),
  hash: z.string(),
  hash_v2: z.string(),
  show_autosearch: z.boolean(),
  health: healthSchema.optional(),
});

/**
 * CHOICE(content-type): the interface defines only `live`. Other content is `vod`, or `unknown` if it is not analyzed yet.
 */
const CONTENT_TYPES = { "1": "live", "0": "vod", "-1": "unknown" } as const;

/** Converts an item to JSON for `playlist_trash_get`. */
export function presentItem(item: Item, figures: ItemFigures): z.output<typeof itemSchema> {
  const { content } = item;
  return {
    id: item.id,
    title: item.title,
    display_title: item.displayTitle,
    description: item.description,
    poster: item.poster,
    category: item.category,
    subcategory: item.subcategory,
    tags: [...item.tags],
    content_id: content.contentId,
    infohash: content.infohash ?? "",
    url: content.url,
    content_type: CONTENT_TYPES[item.isLive],
    transport_type: content.transport,
    is_live: item.isLive,
    is_favorite: item.isFavorite,
    enabled: item.isEnabled,
    locked: item.isLocked,
    auto_search: item.autoSearch,
    is_deleted: item.deletedAt !== null,
    is_multi_vod: figures.isMultiVod,
    is_multi_tfile: figures.isMultiTfile,
    is_wrapped_url: figures.isWrappedUrl,
    external_playlist_id: item.externalPlaylistId,
    tvg_id: item.tvgId,
    tvg_name: item.tvgName,
    tvg_logo: item.tvgLogo,
    tvg_chno: channelNumberOf(item) ?? null,
    languages: item.languages && [...item.languages],
    countries: item.countries && [...item.countries],
    created_at: item.createdAt,
    updated_at: item.updatedAt,
  };
}

/** Converts an item to JSON for `playlist_get`. `base` is `http://host:port` as the client addressed the engine. */
export function presentListedItem(
  item: Item,
  figures: ItemFigures,
  base: string,
  health: Health | undefined,
): z.output<typeof listedItemSchema> {
  return {
    ...presentItem(item, figures),
    icons: presentIcons(figures, base),
    hash: figures.hash,
    hash_v2: figures.hashV2,
    show_autosearch: figures.showAutosearch,
    ...(health && { health: presentHealth(health) }),
  };
}

function presentHealth({ status, availability, checkedAt, problem, last }: Health) {
  return {
    status,
    availability,
    checked_at: checkedAt,
    ...(problem !== undefined && { problem }),
    ...(last && {
      start_ms: last.startMs,
      speed: last.receivedPerSecond,
      bitrate: last.facts.bytesPerSecond,
      codecs: [...last.facts.codecs],
      width: last.facts.width,
      height: last.facts.height,
      languages: [...last.facts.languages],
      ...(last.facts.isMoving !== undefined && { is_moving: last.facts.isMoving }),
    }),
  };
}

/** Converts the icons of an item to JSON, with absolute URLs. */
export function presentIcons({ icons }: ItemFigures, base: string): z.output<typeof iconSchema>[] {
  return icons.map((icon) => ({
    url: "imageId" in icon ? `${base}/image/${icon.imageId}` : icon.url,
    type: icon.type,
  }));
}
