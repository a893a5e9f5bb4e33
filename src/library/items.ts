import { assert } from "../base/assert.ts";
import { SluiceError } from "../base/errors.ts";
import type { Sha1 } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import type { Clock, KeyValueStore } from "../runtime/contract.ts";
import type { Item, ItemChange, ItemDraft, ItemFacts, ItemFigures, ItemPage, ItemQuery } from "./contract.ts";
import { newItem, withChange, withFacts } from "./item-changes.ts";
import { FLAGS } from "./item-columns.ts";
import { itemFigures } from "./item-figures.ts";
import { findItems } from "./item-filter.ts";
import type { ItemIndex } from "./item-index.ts";
import { openItemParts } from "./item-loading.ts";
import { checkTexts, readChange, readDraft } from "./item-members.ts";
import { pause } from "./item-pause.ts";
import type { KeptItem } from "./item-record.ts";
import { ItemRefresh } from "./item-refresh.ts";
import type { ItemStore, UpsertOutcome } from "./item-sync.ts";
import type { ItemWriter } from "./item-writer.ts";
import { BATCH_ITEMS, MAX_SOURCE_KEY, MAX_SOURCES } from "./limits.ts";

/** What the items are made of. */
export interface ItemsParts {
  readonly store: KeyValueStore;
  readonly clock: Clock;
  readonly log: Log;
  readonly sha1: Sha1;
}

/**
 * Opens the user's lists. Reads every record once; one that is damaged is left out, and told to the log. Nobody else
 * may write items to the same store.
 */
export async function createItems(parts: ItemsParts): Promise<ItemStore> {
  const { index, tombstones, writer } = await openItemParts(parts);
  const refresh = new ItemRefresh({ clock: parts.clock, index, tombstones, writer });
  return new KeptItems(parts, index, writer, refresh);
}

class KeptItems implements ItemStore {
  readonly #parts: ItemsParts;
  readonly #index: ItemIndex;
  readonly #writer: ItemWriter;
  readonly #refresh: ItemRefresh;

  constructor(parts: ItemsParts, index: ItemIndex, writer: ItemWriter, refresh: ItemRefresh) {
    this.#parts = parts;
    this.#index = index;
    this.#writer = writer;
    this.#refresh = refresh;
  }

  async get(id: number): Promise<Item | undefined> {
    return (await this.#writer.read(id))?.item;
  }

  async query(query: ItemQuery): Promise<ItemPage> {
    const ids = findItems(this.#index, query);
    const { offset = 0, limit = ids.length } = query;
    const items: Item[] = [];
    for await (const batch of this.#read(ids.slice(offset, offset + limit))) items.push(...batch);
    return { total: ids.length, items };
  }

  async *each(query: ItemQuery): AsyncIterable<Item> {
    const ids = findItems(this.#index, query);
    const { offset = 0, limit = ids.length } = query;
    for await (const batch of this.#read(ids.slice(offset, offset + limit))) yield* batch;
  }

  async add(draft: ItemDraft): Promise<Item> {
    const members = readDraft(draft);
    const { externalPlaylistId = -1, sourceKey = null } = draft;
    assert((sourceKey?.length ?? 0) <= MAX_SOURCE_KEY, "a source key is short");
    return this.#writer.turns.run(async () => {
      this.#writer.makeRoom(1);
      const origin = { externalPlaylistId, sourceKey };
      const kept = newItem(this.#writer.takeId(), members, origin, this.#parts.clock.unixSeconds());
      await this.#writer.put([kept]);
      return kept.item;
    });
  }

  async update(id: number, change: ItemChange): Promise<Item> {
    const wanted = readChange(change);
    return this.#change(id, (kept) => withChange(kept, wanted, this.#parts.clock.unixSeconds()));
  }

  async updateMany(ids: readonly number[], change: ItemChange): Promise<number> {
    const wanted = readChange(change);
    const { isLocked } = wanted;
    this.#checkKnown(ids);
    return this.#changeMany(ids, (kept) => {
      const allowed = kept.item.isLocked ? (isLocked === undefined ? {} : { isLocked }) : wanted;
      return withChange(kept, allowed, this.#parts.clock.unixSeconds());
    });
  }

  async learn(id: number, facts: ItemFacts): Promise<Item> {
    return this.#change(id, (kept) => withFacts(kept, facts));
  }

  async group(id: number): Promise<readonly number[]> {
    const slot = this.#slotOf(id);
    const others = this.#sourcesOf(slot, Number.POSITIVE_INFINITY).filter((other) => other !== slot);
    return [id, ...others.sort((a, b) => a - b).map((other) => this.#index.columns.ids[other]!)];
  }

  async bestMatch(id: number): Promise<Item | undefined> {
    const { columns } = this.#index;
    const slot = this.#slotOf(id);
    let best = -1;
    for (const other of this.#playableOthers(slot))
      if (best === -1 || this.#rank(other, best) > 0) best = other;
    return best === -1 ? undefined : this.get(columns.ids[best]!);
  }

  figures(item: Item): ItemFigures {
    const slot = this.#index.columns.slotOf(item.id);
    const hasOthers = slot !== -1 && this.#playableOthers(slot).length > 0;
    return itemFigures(item, hasOthers, this.#parts.sha1);
  }

  async delete(ids: readonly number[], owner?: string): Promise<number> {
    this.#checkKnown(ids, owner);
    const deletedAt = this.#parts.clock.unixSeconds();
    return this.#changeMany(ids, (kept) => {
      const stays = kept.item.deletedAt !== null || (kept.item.isLocked && ids.length > 1);
      return stays ? undefined : { ...kept, item: { ...kept.item, deletedAt } };
    });
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

  upsert(drafts: readonly ItemDraft[]): Promise<UpsertOutcome> {
    return this.#refresh.upsert(drafts);
  }

  removeExcept(externalPlaylistId: number, keep: ReadonlySet<number>): Promise<number> {
    return this.#refresh.removeExcept(externalPlaylistId, keep);
  }

  removeAll(externalPlaylistId: number): Promise<number> {
    return this.#refresh.removeAll(externalPlaylistId);
  }

  countOf(externalPlaylistId: number): number {
    return this.#refresh.countOf(externalPlaylistId);
  }

  /** What is still there of these ids, a batch at a time, others having their turn in between. */
  async *#read(ids: readonly number[]): AsyncIterable<Item[]> {
    for (let at = 0; at < ids.length; at += BATCH_ITEMS) {
      if (at > 0) await pause();
      const batch = await this.#writer.readMany(ids.slice(at, at + BATCH_ITEMS));
      yield batch.map(({ item }) => item);
    }
  }

  #change(id: number, change: (kept: KeptItem) => KeptItem | undefined): Promise<Item> {
    return this.#writer.turns.run(async () => {
      const kept = await this.#writer.read(id);
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
    change: (kept: KeptItem) => KeptItem | undefined,
  ): Promise<number> {
    const all = [...new Set(ids)];
    let changed = 0;
    for (let at = 0; at < all.length; at += BATCH_ITEMS) {
      await this.#writer.turns.run(async () => {
        const items = (await this.#writer.readMany(all.slice(at, at + BATCH_ITEMS))).map(change);
        // Also where nothing is to be written.
        await pause();
        const different = items.filter((kept) => kept !== undefined);
        for (const { item } of different) checkTexts(item);
        await this.#writer.put(different);
        changed += different.length;
      });
    }
    return changed;
  }

  /** Deletes for good what fits and is not locked, a batch at a time. */
  async #removeAll(query: ItemQuery): Promise<void> {
    const { columns } = this.#index;
    const ids = findItems(this.#index, { ...query, sort: "added" });
    const state = query.state === "trash" ? FLAGS.trash : 0;
    for (let at = 0; at < ids.length; at += BATCH_ITEMS) {
      await this.#writer.turns.run(async () => {
        // What was restored or locked meanwhile stays.
        const going = ids.slice(at, at + BATCH_ITEMS).filter((id) => {
          const slot = columns.slotOf(id);
          return slot !== -1 && (columns.flags[slot]! & (FLAGS.trash | FLAGS.locked)) === state;
        });
        await this.#writer.remove(going, { withTombstones: true });
      });
      await pause();
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
        throw new SluiceError("unknown_item", `there is no item ${id} of ${owner}`);
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

  /** CHOICE(auto-search): the best source of a channel. Above 0 where `a` is the better one. */
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
  return new SluiceError("unknown_item", `there is no item ${id}`);
}
