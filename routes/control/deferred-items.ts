import { SluiceError } from "../../src/base/errors.ts";
import type { Item } from "../../src/library/contract.ts";
import type { Analysis } from "../../src/transfer/contract.ts";
import { itemSelector } from "./content-params.ts";
import type { ControlCall } from "./method.ts";
import { inspectOptions } from "./service-content.ts";

/** An item to analyze. */
interface DeferredItem {
  readonly id: number;
  /** Analyzes the item and stores the result. Rejects with `SluiceError`. */
  analyze(): Promise<Analysis>;
}

/** The number of items that a call without ids analyzes. An item without peers takes half a minute, and clients wait only a few minutes. */
export const DEFAULT_ITEM_COUNT = 20;

/**
 * Selects the items to analyze: `ids`, or random items that are not analyzed yet; with `withGroups` also the other sources
 * of their channels, up to `limit` items.
 *
 * CHOICE(deferred-items): without ids the choice is random, so that dead items do not block others forever. The result
 * (live or not, infohash, content id, number of files) is stored with the item; it never overwrites an edit of the user.
 */
export async function selectItems(
  ids: readonly number[],
  withGroups: boolean,
  limit: number,
  call: ControlCall,
): Promise<readonly DeferredItem[]> {
  const { items } = call.library;
  const selected = new Set<number>(ids.length > 0 ? ids : await deferredIds(call));
  if (withGroups) {
    for (const id of [...selected]) {
      if (selected.size >= limit) break;
      // An unknown id becomes an error in its own element of the result.
      if (!(await items.get(id))) continue;
      for (const other of await items.group(id)) if (selected.size < limit) selected.add(other);
    }
  }
  return [...selected].map((id) => ({ id, analyze: () => analyzeItem(id, call) }));
}

/** Chooses items with equal probability (reservoir sampling, Algorithm R), sorted by id. */
async function deferredIds({ library, signal }: ControlCall): Promise<number[]> {
  const chosen: number[] = [];
  let seen = 0;
  const reader = library.items.read({ sort: "added" });
  for (let items = await reader.next(); items.length > 0 && !signal.aborted; items = await reader.next()) {
    for (const item of items.filter(isDeferred)) {
      const place = seen < DEFAULT_ITEM_COUNT ? seen : Math.floor(Math.random() * (seen + 1));
      seen++;
      if (place < DEFAULT_ITEM_COUNT) chosen[place] = item.id;
    }
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
  const { inspect } = call.dependencies.engine;
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
