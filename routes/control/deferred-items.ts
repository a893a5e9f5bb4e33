import { SluiceError } from "../../src/base/errors.ts";
import type { Analysis } from "../../src/engine/contract.ts";
import type { Item } from "../../src/library/contract.ts";
import { itemSelector } from "./content-params.ts";
import type { ControlCall } from "./method.ts";
import { inspectOptions } from "./service-content.ts";

/** One item, and how to look at it. */
interface DeferredItem {
  readonly id: number;
  /** Looks, and keeps what was found. Rejects with `SluiceError`. */
  analyze(): Promise<Analysis>;
}

/** So many are looked at where none is named: one that nobody has costs half a minute, and clients wait for minutes only. */
export const UNNAMED_ITEMS = 20;

/**
 * CHOICE(deferred-items): the items that are named, or some of those that nobody has looked at: by chance, so that dead ones
 * do not stand in the way of others for ever. What is found out is kept with the item (live or not, infohash, content id,
 * number of files); no edit of the user's is touched.
 */
export async function analyzeItems(
  ids: readonly number[],
  withGroups: boolean,
  limit: number,
  call: ControlCall,
): Promise<readonly DeferredItem[]> {
  const { items } = call.library;
  const wanted = new Set<number>(ids.length > 0 ? ids : await deferredIds(call));
  if (withGroups) {
    for (const id of [...wanted]) {
      if (wanted.size >= limit) break;
      // An id that is not there is told in its own place.
      if (!(await items.get(id))) continue;
      for (const other of await items.group(id)) if (wanted.size < limit) wanted.add(other);
    }
  }
  return [...wanted].map((id) => ({ id, analyze: () => analyzeItem(id, call) }));
}

/** A fair choice among all of them, in the order in which they came (Knuth, Algorithm R). */
async function deferredIds({ library, signal }: ControlCall): Promise<number[]> {
  const chosen: number[] = [];
  let seen = 0;
  for await (const item of library.items.each({ sort: "added" })) {
    if (signal.aborted) break;
    if (!isDeferred(item)) continue;
    const place = seen < UNNAMED_ITEMS ? seen : Math.floor(Math.random() * (seen + 1));
    seen++;
    if (place < UNNAMED_ITEMS) chosen[place] = item.id;
  }
  return chosen.sort((a, b) => a - b);
}

function isDeferred({ isLive, fileCount, content }: Item): boolean {
  return isLive === -1 || (content.transport === "bt" && fileCount === null);
}

async function analyzeItem(id: number, call: ControlCall): Promise<Analysis> {
  const { items } = call.library;
  const item = await items.get(id);
  if (!item) throw new SluiceError("unknown_item", `there is no item ${id}`);
  const { inspect } = call.house.engine;
  if (item.content.transport !== "bt") {
    const analysis = await inspect.analyze(item.content.url ?? "", item.title, inspectOptions(call));
    await items.learn(id, { isLive: analysis.isLive });
    return analysis;
  }
  const found = await inspect.describe(itemSelector(item), inspectOptions(call));
  const isLive = found.type === "live" ? 1 : 0;
  await items.learn(id, {
    isLive,
    fileCount: found.files.filter((file) => file.isPlayable).length,
    infohash: found.infohash,
    ...(found.contentId ? { contentId: found.contentId } : {}),
  });
  return {
    contentType: "transport_file",
    transportType: found.transportType === "hls" ? "hls" : "bt",
    contentId: found.contentId ?? null,
    infohash: found.infohash,
    itemUrl: item.content.url,
    title: item.title,
    isLive,
    categories: item.category === null ? [] : [item.category],
  };
}
