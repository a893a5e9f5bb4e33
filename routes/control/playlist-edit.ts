import { z } from "zod";
import type { ItemContent, ItemDraft } from "../../src/library/contract.ts";
import type { Inspector } from "../../src/transfer/contract.ts";
import { addedContentParams, namedContent } from "./item-content.ts";
import { changeGroup } from "./media-group.ts";
import { type ControlCall, type ControlMethod, controlMethod, PRIVATE } from "./method.ts";
import { bool } from "./params.ts";
import * as itemParams from "./playlist-params.ts";

const addParams = z.object({
  ...addedContentParams,
  title: itemParams.title,
  description: itemParams.description,
  category: itemParams.name.describe("Such as tv, movies, music_video, music, other"),
  subcategory: itemParams.name.describe("Such as tv, movies, music_video, music, other"),
  poster: itemParams.poster.describe("The URL of an image"),
  tags: itemParams.tags,
  is_live: itemParams.isLive,
  auto_search: bool,
  use_media_groups: bool,
  owner: itemParams.owner,
});

const LOGO = "PNG, JPEG, GIF or WebP";

/** `playlist_add_item` and `playlist_update_item` (interface: Playlist methods). */
export const editMethods: readonly ControlMethod[] = [
  controlMethod({
    name: "playlist_add_item",
    summary: "Adds an item to the playlist; upload a transport file or a logo as a multipart/form-data POST",
    ...PRIVATE,
    params: addParams,
    files: { file: "A transport file of at most 50 MB", logo_file: LOGO },
    result: z.int(),
    async run(params, call) {
      const content = await draftedContent(params, call);
      const { category, subcategory, description, poster, tags, owner } = params;
      const isLive = params.is_live ?? content.isLive;
      const autoSearch = params.auto_search;
      const details = itemParams.omitUndefined({
        category,
        subcategory,
        description,
        poster,
        tags,
        owner,
        isLive,
        autoSearch,
      });
      const { logo_file } = call.files;
      const logo = logo_file && (await call.library.images.put(logo_file.bytes));
      const draft = { ...content, ...details, ...itemParams.omitUndefined({ title: params.title, logo }) };
      const { id } = await call.library.items.add(draft);
      // The item joins a media group, and auto search applies to the whole group.
      if (params.use_media_groups && autoSearch !== undefined)
        await changeGroup(call.library.items, id, { autoSearch }, { wholeGroup: true });
      return id;
    },
  }),
  controlMethod({
    name: "playlist_update_item",
    summary: "Changes an item; absent parameters keep their values",
    ...PRIVATE,
    params: z.object({
      ...itemParams.itemParams,
      title: itemParams.title,
      description: itemParams.description,
      category: itemParams.clearableName,
      subcategory: itemParams.clearableName,
      poster: itemParams.poster.describe("The URL of an image; empty removes it"),
      tags: itemParams.tags,
      auto_search: bool,
      is_favorite: bool,
      owner: itemParams.owner,
    }),
    files: { logo_file: LOGO },
    result: z.literal(true),
    async run({ id, use_media_groups, owner, category, ...params }, { library, files: { logo_file } }) {
      const { title, description, subcategory, poster, tags } = params;
      const logo = logo_file && (await library.images.put(logo_file.bytes));
      const flags = { autoSearch: params.auto_search, isFavorite: params.is_favorite };
      const change = itemParams.omitUndefined({
        title,
        description,
        subcategory,
        poster,
        tags,
        logo,
        ...flags,
      });
      const cleared = category === undefined ? change : { ...change, category: category || null };
      await changeGroup(library.items, id, cleared, { wholeGroup: use_media_groups ?? false, owner });
      return true;
    },
  }),
];

/** Builds a new item from its content. Stores an uploaded transport file permanently before the item is added. */
async function draftedContent(
  params: z.output<typeof addParams>,
  { dependencies, files }: ControlCall,
): Promise<ItemDraft> {
  const named = namedContent(params, files.file);
  if (!("upload" in named)) {
    const { title = named.title, ...known } = await knownDetails(named.content, dependencies.engine.inspect);
    return { content: named.content, title: itemParams.clippedTitle(title), ...known };
  }
  const stored = await dependencies.engine.inspect.keep(named.upload.bytes);
  const ids = { infohash: stored.infohash, contentId: stored.contentId ?? null };
  return {
    content: { transport: "bt", ...ids, magnet: null, url: null },
    title: itemParams.clippedTitle(stored.name),
    isLive: stored.type === "live" ? 1 : 0,
    fileCount: stored.files.filter((file) => file.isPlayable).length,
  };
}

/** Returns title and kind of swarm content if the engine has its transport file; sends no network request. */
async function knownDetails(
  { transport, infohash, contentId, magnet }: ItemContent,
  inspect: Inspector,
): Promise<Partial<Pick<ItemDraft, "title" | "isLive">>> {
  const query = magnet ?? (infohash === null ? contentId : `sluice:?infohash=${infohash}`);
  if (transport !== "bt" || query === null) return {};
  const { isLive, title } = await inspect.analyze(query, undefined, { allowPrivateUrls: false });
  return isLive === -1 ? {} : { isLive, title };
}
