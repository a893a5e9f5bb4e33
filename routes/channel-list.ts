import type { Context } from "hono";
import { numberChannels } from "../src/base/channel-numbers.ts";
import type { Engine } from "../src/engine/engine.ts";
import type { Item, ItemQuery } from "../src/library/contract.ts";
import type { Library } from "../src/library/library.ts";
import type { PlaybackRequest } from "../src/playback/contract.ts";
import { itemSelector } from "./control/content-params.ts";
import type { RouteDependencies, RouteEnv } from "./http/dependencies.ts";
import { createPlayLinkRoutes, MAX_SOURCES } from "./play-links.ts";
import { connect } from "./session.ts";

/**
 * Returns the channels of the playlist in the order in which they were added, at most `limit`: the enabled items that are not films. Of
 * several sources of one channel, the first stands for all. With `groups`, only items in one of these categories or tags.
 */
export async function channelItems(
  { items }: Pick<Library, "items">,
  limit: number,
  groups: readonly string[] = [],
): Promise<Item[]> {
  const channels = new Map<string, Item>();
  const reader = items.read({ ...inGroups(groups), isEnabled: true, sort: "added" });
  for (let some = await reader.next(); some.length > 0; some = await reader.next())
    for (const item of some) {
      if (channels.size >= limit) return [...channels.values()];
      const { hash } = items.figures(item);
      if (item.isLive !== 0 && !channels.has(hash)) channels.set(hash, item);
    }
  return [...channels.values()];
}

/** Clients become slow with more, and none of them needs the films of the list. */
const MAX_NUMBERED = 2_000;

/** Returns the channels of the playlist by their numbers, at most 2,000. */
export async function numberedChannels(library: Pick<Library, "items">): Promise<ReadonlyMap<string, Item>> {
  return numberChannels(await channelItems(library, MAX_NUMBERED));
}

/** Returns the query for items in one of these categories or tags; none: all items. */
export function inGroups(groups: readonly string[]): ItemQuery {
  return groups.length === 0 ? {} : { label: groups };
}

/** Plays an item by its play link; `query` is added to that of the request. */
type PlayItem = (
  c: Context<RouteEnv>,
  id: number,
  query?: Readonly<Record<string, string>>,
) => Response | Promise<Response>;

/** Returns a function that answers a request as the play link of an item does. It rejects with the same errors. */
export function createItemPlayer(dependencies: RouteDependencies & { readonly library: Library }): PlayItem {
  const links = createPlayLinkRoutes(dependencies);
  links.onError((thrown) => {
    throw thrown;
  });
  return (c, id, query = {}) => {
    const url = new URL(c.req.url);
    url.pathname = `/play/0/${id}`;
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    const { headers, signal, method } = c.req.raw;
    return links.fetch(new Request(url, { headers, signal, method }), c.env);
  };
}

/** The request to play an item's own content as one transport stream. */
export function channelRequest(item: Item, allowPrivateUrls: boolean): PlaybackRequest {
  return {
    selector: itemSelector(item),
    playerId: undefined,
    output: "ts",
    container: "auto",
    fileIndex: undefined,
    audioLanguage: undefined,
    clientSessionId: -1,
    wantsEvents: false,
    allowPrivateUrls,
  };
}

/**
 * Returns a function that plays the channel of an item as one transport stream: for the engine itself, which fails when all its sources
 * have failed; or for a player, with the test pattern then.
 */
export function createChannelOpener(
  engine: Pick<Engine, "playChannel">,
  library: Pick<Library, "sourcesOf">,
  { isPlayer = false }: { readonly isPlayer?: boolean } = {},
): (
  item: Item,
  options: { readonly allowPrivateUrls: boolean },
  signal: AbortSignal,
) => Promise<ReadableStream<Uint8Array>> {
  return async (item, { allowPrivateUrls }, signal) => {
    const sources = (await library.sourcesOf(item, MAX_SOURCES)).map((source) => ({
      name: `item ${source.id}`,
      request: { ...channelRequest(source, allowPrivateUrls), isBackground: !isPlayer },
    }));
    const title = item.displayTitle || item.title;
    return engine.playChannel(sources, connect, { title, signal, hasPattern: isPlayer });
  };
}
