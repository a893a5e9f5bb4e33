import { z } from "zod";
import type { Inspector } from "../../src/engine/contract.ts";
import type { ItemContent, ItemDraft } from "../../src/library/contract.ts";
import { addedContentParams, namedContent } from "./item-content.ts";
import { changeGroup } from "./media-group.ts";
import { type ControlCall, type ControlMethod, controlMethod } from "./method.ts";
import { bool, file } from "./params.ts";
import * as say from "./playlist-params.ts";

const addParams = z.object({
  ...addedContentParams,
  title: say.title,
  description: say.description,
  category: say.name.describe("Such as tv, movies, music_video, music, other"),
  subcategory: say.name.describe("Such as tv, movies, music_video, music, other"),
  poster: say.webUrl.describe("The URL of a picture"),
  tags: say.tags,
  is_live: say.isLive,
  auto_search: bool,
  use_media_groups: bool,
  logo_file: file.describe("PNG, JPEG, GIF or WebP"),
  owner: say.owner,
});

/** `playlist_add_item` and `playlist_update_item` (interface: Playlist methods). */
export const editMethods: readonly ControlMethod[] = [
  controlMethod({
    name: "playlist_add_item",
    summary: "Adds an item to the playlist; transport file and logo as a multipart/form-data POST",
    ...say.PRIVATE,
    params: addParams,
    result: z.int(),
    async run(params, call) {
      const content = await draftedContent(params, call);
      const { category, subcategory, description, poster, tags, owner } = params;
      const isLive = params.is_live ?? content.isLive;
      const autoSearch = params.auto_search;
      const details = say.said({
        category,
        subcategory,
        description,
        poster,
        tags,
        owner,
        isLive,
        autoSearch,
      });
      const logo = params.logo_file && (await call.library.images.put(params.logo_file.bytes));
      const draft = { ...content, ...details, ...say.said({ title: params.title, logo }) };
      const { id } = await call.library.items.add(draft);
      // It joins the sources of its channel: what is said about the search is said of them all.
      if (params.use_media_groups && autoSearch !== undefined)
        await changeGroup(call.library.items, id, { autoSearch }, { wholeGroup: true });
      return id;
    },
  }),
  controlMethod({
    name: "playlist_update_item",
    summary: "Changes an item; what is not given stays as it is",
    ...say.PRIVATE,
    params: z.object({
      ...say.itemChoice,
      title: say.title,
      description: say.description,
      category: say.clearableName,
      subcategory: say.clearableName,
      poster: say.clearableUrl.describe("The URL of a picture; empty for none"),
      tags: say.tags,
      auto_search: bool,
      is_favorite: bool,
      logo_file: file.describe("PNG, JPEG, GIF or WebP"),
      owner: say.owner,
    }),
    result: z.literal(true),
    async run({ id, use_media_groups, owner, logo_file, category, ...params }, { library }) {
      const { title, description, subcategory, poster, tags } = params;
      const logo = logo_file && (await library.images.put(logo_file.bytes));
      const flags = { autoSearch: params.auto_search, isFavorite: params.is_favorite };
      const change = say.said({ title, description, subcategory, poster, tags, logo, ...flags });
      const cleared = category === undefined ? change : { ...change, category: category || null };
      await changeGroup(library.items, id, cleared, { wholeGroup: use_media_groups ?? false, owner });
      return true;
    },
  }),
];

/** What the content itself says of the new item. An uploaded transport file is kept for good before the item is. */
async function draftedContent(
  params: z.output<typeof addParams>,
  { house }: ControlCall,
): Promise<ItemDraft> {
  const named = namedContent(params);
  if (!("upload" in named)) {
    const { title = named.title, ...known } = await knownOf(named.content, house.engine.inspect);
    return { content: named.content, title: say.clippedTitle(title), ...known };
  }
  const kept = await house.engine.inspect.keep(named.upload.bytes);
  const ids = { infohash: kept.infohash, contentId: kept.contentId ?? null };
  return {
    content: { transport: "bt", ...ids, magnet: null, url: null },
    title: say.clippedTitle(kept.name),
    isLive: kept.type === "live" ? 1 : 0,
    fileCount: kept.files.filter((file) => file.isPlayable).length,
  };
}

/** What is known here of content of the peer network; nobody is asked. */
async function knownOf(
  { transport, infohash, contentId, magnet }: ItemContent,
  inspect: Inspector,
): Promise<Partial<Pick<ItemDraft, "title" | "isLive">>> {
  const query = magnet ?? (infohash === null ? contentId : `sluice:?infohash=${infohash}`);
  if (transport !== "bt" || query === null) return {};
  const { isLive, title } = await inspect.analyze(query, undefined, { allowPrivateUrls: false });
  return isLive === -1 ? {} : { isLive, title };
}
