import { yieldToLoop } from "../async/event-loop.ts";
import type { Fence } from "../async/records.ts";
import { Slots } from "../async/slots.ts";
import { assert } from "../base/assert.ts";
import { toHex } from "../base/bytes.ts";
import { SluiceError } from "../base/errors.ts";
import type { Infohash, Sha1 } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import type { Clock, KeyValueStore } from "../runtime/contract.ts";
import type {
  Item,
  ItemChange,
  ItemContent,
  ItemDraft,
  ItemFacts,
  ItemFigures,
  ItemOutline,
  ItemPage,
  ItemQuery,
  ItemReader,
} from "./contract.ts";
import { newItem, withChange, withFacts } from "./item-changes.ts";
import { FLAGS } from "./item-columns.ts";
import { contentHash, itemFigures } from "./item-figures.ts";
import { findItems, findNext, findPage, type ItemPosition } from "./item-filter.ts";
import type { ItemIndex } from "./item-index.ts";
import { openItemStorage } from "./item-loading.ts";
import { checkTexts, readChange, readDraft } from "./item-members.ts";
import type { StoredItem } from "./item-record.ts";
import { ItemRefresh } from "./item-refresh.ts";
import type { ItemStore, UpsertOutcome } from "./item-sync.ts";
import type { ItemWriter } from "./item-writer.ts";
import { BATCH_ITEMS, MAX_SOURCE_KEY, MAX_SOURCES } from "./limits.ts";

/** Items that an {@link ItemReader} returns at once. */
const READ_ITEMS = 100;
/** Ids that it holds: few, because there may be hundreds of readers, but a search in all titles takes milliseconds. */
const PAGE_ITEMS = 2_000;
/** Readers that may wait, and searches; as many as there are HTTP connections. */
const MAX_WAITING = 1_000;

interface ItemsDependencies {
  readonly store: KeyValueStore;
  readonly clock: Clock;
  readonly log: Log;
  readonly sha1: Sha1;
}

/**
 * Opens the items. Reads every record; logs and ignores damaged ones. Other processes may write to the same store if
 * it can be watched.
 */
export async function createItems(dependencies: ItemsDependencies): Promise<ItemStore> {
  const { index, tombstones, writer } = await openItemStorage(dependencies);
  writer.follow();
  const refresh = new ItemRefresh({ clock: dependencies.clock, index, tombstones, writer });
  return new StoreItems(dependencies, index, writer, refresh);
}

function slots(what: string): Slots {
  const queueFull = () => new SluiceError("too_many", `${MAX_WAITING} ${what}; try again later`);
  return new Slots({ limit: 1, queueLimit: MAX_WAITING, queueFull });
}

/** Runs `work` when a slot is free, in a turn of the event loop of its own. */
async function inOwnTurn<T>(slots: Slots, work: () => T | Promise<T>): Promise<T> {
  const release = await slots.take();
  try {
    await yieldToLoop();
    return await work();
  } finally {
    release();
  }
}

class StoreItems implements ItemStore {
  readonly #dependencies: ItemsDependencies;
  readonly #index: ItemIndex;
  readonly #writer: ItemWriter;
  readonly #refresh: ItemRefresh;
  /** One reader reads at a time, in a turn of the event loop of its own, so that many of them do not delay players. */
  readonly #readSlots = slots("lists are waiting to be read");
  /** The same for searches of the index, each of which takes some milliseconds in a list of 100,000. */
  readonly #searchSlots = slots("searches are waiting");

  constructor(dependencies: ItemsDependencies, index: ItemIndex, writer: ItemWriter, refresh: ItemRefresh) {
    this.#dependencies = dependencies;
    this.#index = index;
    this.#writer = writer;
    this.#refresh = refresh;
  }

  async get(id: number): Promise<Item | undefined> {
    return (await this.#writer.read(id))?.item;
  }

  async query(query: ItemQuery): Promise<ItemPage> {
    const { total, ids } = await inOwnTurn(this.#searchSlots, () => findPage(this.#index, query));
    const items: Item[] = [];
    for (let at = 0; at < ids.length; at += BATCH_ITEMS) {
      if (at > 0) await yieldToLoop();
      items.push(...(await this.#itemsOf(ids.slice(at, at + BATCH_ITEMS))));
    }
    return { total, items };
  }

  outline(query: ItemQuery): Promise<ItemOutline[]> {
    const { columns } = this.#index;
    const range = { skip: query.offset ?? 0, count: query.limit ?? Number.POSITIVE_INFINITY };
    return inOwnTurn(this.#searchSlots, () =>
      findNext(this.#index, query, undefined, range).ids.map((id) => {
        const slot = columns.slotOf(id);
        return {
          id,
          channel: hexOf(columns.groupHigh[slot]!, columns.groupLow[slot]!),
          content: hexOf(columns.contentHigh[slot]!, columns.contentLow[slot]!),
          hasInfohash: columns.has(slot, FLAGS.hashed),
        };
      }),
    );
  }

  contentHash(infohash: Infohash): string {
    const content: ItemContent = { transport: "bt", contentId: null, infohash, magnet: null, url: null };
    return toHex(contentHash({ content }, this.#dependencies.sha1));
  }

  read(query: ItemQuery): ItemReader {
    let skip = query.offset ?? 0;
    let left = query.limit ?? Number.POSITIVE_INFINITY;
    let position: ItemPosition | undefined;
    let isAtEnd = false;
    let ids: number[] = [];
    const nextIds = () => {
      if (ids.length === 0 && !isAtEnd) {
        const page = findNext(this.#index, query, position, { skip, count: Math.min(PAGE_ITEMS, left) });
        ids = page.ids;
        position = page.last;
        skip = 0;
        left -= ids.length;
        isAtEnd = position === undefined || left === 0;
      }
      return ids.splice(0, READ_ITEMS);
    };
    return {
      next: () =>
        inOwnTurn(this.#readSlots, async () => {
          for (let some = nextIds(); some.length > 0; some = nextIds()) {
            const items = await this.#itemsOf(some);
            // Empty if they were removed meanwhile.
            if (items.length > 0) return items;
          }
          return [];
        }),
    };
  }

  async add(draft: ItemDraft): Promise<Item> {
    const members = readDraft(draft);
    const { externalPlaylistId = -1, sourceKey = null } = draft;
    assert((sourceKey?.length ?? 0) <= MAX_SOURCE_KEY, "a source key is short");
    return this.#writer.change(async () => {
      this.#writer.checkCapacity(1);
      const origin = { externalPlaylistId, sourceKey };
      const kept = newItem(this.#writer.takeId(), members, origin, this.#dependencies.clock.unixSeconds());
      const [written] = await this.#writer.put([kept]);
      return written!.item;
    });
  }

  async update(id: number, change: ItemChange): Promise<Item> {
    const wanted = readChange(change);
    return this.#change(id, (kept) => withChange(kept, wanted, this.#dependencies.clock.unixSeconds()));
  }

  async updateMany(ids: readonly number[], change: ItemChange): Promise<number> {
    const wanted = readChange(change);
    this.#checkKnown(ids);
    return this.#changeMany(ids, (kept) => withChange(kept, wanted, this.#dependencies.clock.unixSeconds()));
  }

  async learn(id: number, facts: ItemFacts): Promise<Item> {
    return this.#change(id, (kept) => withFacts(kept, facts));
  }

  async group(id: number): Promise<readonly number[]> {
    const slot = this.#slotOf(id);
    const others = this.#sourcesOf(slot, Number.POSITIVE_INFINITY).filter((other) => other !== slot);
    return [id, ...others.sort((a, b) => a - b).map((other) => this.#index.columns.ids[other]!)];
  }

  async otherSources(id: number, limit: number): Promise<readonly Item[]> {
    const { columns } = this.#index;
    const best = this.#playableOthers(this.#slotOf(id))
      .sort((a, b) => this.#rank(b, a))
      .slice(0, limit);
    const items = await Promise.all(best.map((slot) => this.get(columns.ids[slot]!)));
    return items.filter((item) => item !== undefined);
  }

  figures(item: Item): ItemFigures {
    const slot = this.#index.columns.slotOf(item.id);
    const hasOthers = slot !== -1 && this.#playableOthers(slot).length > 0;
    return itemFigures(item, hasOthers, this.#dependencies.sha1);
  }

  async delete(ids: readonly number[], owner?: string): Promise<number> {
    this.#checkKnown(ids, owner);
    const deletedAt = this.#dependencies.clock.unixSeconds();
    return this.#changeMany(ids, (kept) =>
      kept.item.deletedAt === null ? { ...kept, item: { ...kept.item, deletedAt } } : undefined,
    );
  }

  async restore(id: number, owner: string): Promise<void> {
    await this.#change(id, (kept) => {
      if (kept.item.owner !== owner || kept.item.deletedAt === null)
        throw new SluiceError("unknown_item", `item ${id} is not in the trash of ${owner}`);
      return { ...kept, item: { ...kept.item, deletedAt: null } };
    });
  }

  async clearTrash(owner?: string): Promise<void> {
    await this.#removeAll({ state: "trash", ...(owner !== undefined && { owner }) });
  }

  async clear(owner: string): Promise<void> {
    await this.#removeAll({ state: "active", owner });
  }

  upsert(drafts: readonly ItemDraft[], fence?: Fence): Promise<UpsertOutcome> {
    return this.#refresh.upsert(drafts, fence);
  }

  removeExcept(externalPlaylistId: number, keep: ReadonlySet<number>, fence?: Fence): Promise<number> {
    return this.#refresh.removeExcept(externalPlaylistId, keep, fence);
  }

  removeAll(externalPlaylistId: number): Promise<number> {
    return this.#refresh.removeAll(externalPlaylistId);
  }

  countOf(externalPlaylistId: number): number {
    return this.#refresh.countOf(externalPlaylistId);
  }

  /** Returns the existing items of these ids. */
  async #itemsOf(ids: readonly number[]): Promise<Item[]> {
    return (await this.#writer.readMany(ids)).map(({ item }) => item);
  }

  #change(id: number, change: (kept: StoredItem) => StoredItem | undefined): Promise<Item> {
    return this.#writer.change(async () => {
      const kept = await this.#writer.read(id, true);
      if (kept === undefined) throw unknownItem(id);
      const changed = change(kept);
      if (changed === undefined) return kept.item;
      checkTexts(changed.item);
      await this.#writer.put([changed]);
      return changed.item;
    });
  }

  async #changeMany(
    ids: readonly number[],
    change: (kept: StoredItem) => StoredItem | undefined,
  ): Promise<number> {
    const all = [...new Set(ids)];
    let changed = 0;
    for (let at = 0; at < all.length; at += BATCH_ITEMS) {
      changed += await this.#writer.change(async () => {
        const items = (await this.#writer.readMany(all.slice(at, at + BATCH_ITEMS), true)).map(change);
        // `put` yields only if it writes.
        await yieldToLoop();
        const different = items.filter((kept) => kept !== undefined);
        for (const { item } of different) checkTexts(item);
        await this.#writer.put(different);
        return different.length;
      });
    }
    return changed;
  }

  /** Permanently deletes the matching items in batches. */
  async #removeAll(query: ItemQuery): Promise<void> {
    const { columns } = this.#index;
    const ids = findItems(this.#index, { ...query, sort: "added" });
    const state = query.state === "trash" ? FLAGS.trash : 0;
    for (let at = 0; at < ids.length; at += BATCH_ITEMS) {
      await this.#writer.change(async () => {
        // Items that were restored meanwhile stay.
        const deletable = ids.slice(at, at + BATCH_ITEMS).filter((id) => {
          const slot = columns.slotOf(id);
          return slot !== -1 && (columns.flags[slot]! & FLAGS.trash) === state;
        });
        await this.#writer.remove(deletable, { withTombstones: true });
      });
      await yieldToLoop();
    }
  }

  #slotOf(id: number): number {
    const slot = this.#index.columns.slotOf(id);
    if (slot === -1) throw unknownItem(id);
    return slot;
  }

  #checkKnown(ids: readonly number[], owner?: string): void {
    const { columns, owners } = this.#index;
    for (const id of ids) {
      const slot = this.#slotOf(id);
      if (owner !== undefined && columns.owners[slot] !== owners.find(owner))
        throw new SluiceError("unknown_item", `item ${id} of ${owner} does not exist`);
    }
  }

  #sourcesOf(slot: number, limit: number): number[] {
    const { owners, groupLow, groupHigh } = this.#index.columns;
    return this.#index.sourcesOf(owners[slot]!, groupLow[slot]!, groupHigh[slot]!, limit);
  }

  #playableOthers(slot: number): number[] {
    const { columns } = this.#index;
    const sources = this.#sourcesOf(slot, MAX_SOURCES);
    return sources.filter((other) => other !== slot && columns.has(other, FLAGS.enabled));
  }

  /** CHOICE(auto-search): compares two sources of a channel; positive if `a` is the better one. */
  #rank(a: number, b: number): number {
    const { columns } = this.#index;
    const isLiveSwarm = (slot: number) => columns.has(slot, FLAGS.live) && columns.has(slot, FLAGS.swarm);
    return (
      Number(columns.has(a, FLAGS.favorite)) - Number(columns.has(b, FLAGS.favorite)) ||
      Number(isLiveSwarm(a)) - Number(isLiveSwarm(b)) ||
      columns.updatedAt[a]! - columns.updatedAt[b]! ||
      b - a
    );
  }
}

function unknownItem(id: number): SluiceError {
  return new SluiceError("unknown_item", `item ${id} does not exist`);
}

/** Returns the first eight bytes of a hash, which the index keeps as two numbers. */
function hexOf(high: number, low: number): string {
  return [high, low].map((half) => half.toString(16).padStart(8, "0")).join("");
}
