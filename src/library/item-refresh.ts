import { yieldToLoop } from "../async/event-loop.ts";
import type { Fence } from "../async/records.ts";
import type { Clock } from "../runtime/contract.ts";
import type { Item, ItemDraft } from "./contract.ts";
import { newItem, withSource } from "./item-changes.ts";
import { FLAGS } from "./item-columns.ts";
import { findItems } from "./item-filter.ts";
import type { ItemIndex } from "./item-index.ts";
import { fitDraft, type SourceMembers } from "./item-members.ts";
import type { StoredItem } from "./item-record.ts";
import { type ItemSync, MAX_UPSERT_DRAFTS, type UpsertOutcome } from "./item-sync.ts";
import type { Tombstones } from "./item-tombstones.ts";
import type { ItemWriter } from "./item-writer.ts";
import { BATCH_ITEMS, MAX_SOURCE_KEY } from "./limits.ts";

interface ItemRefreshDependencies {
  readonly clock: Clock;
  readonly index: ItemIndex;
  readonly tombstones: Tombstones;
  readonly writer: ItemWriter;
}

/** How a draft is applied. */
interface Plan {
  /** Undefined if the draft is not stored. */
  readonly id: number | undefined;
  readonly action: "none" | "add" | "adopt" | "compare";
  readonly draft: ItemDraft;
  readonly members: SourceMembers;
}

/** Adds, updates and removes the items of imports and external playlists. */
export class ItemRefresh implements ItemSync {
  readonly #dependencies: ItemRefreshDependencies;

  constructor(dependencies: ItemRefreshDependencies) {
    this.#dependencies = dependencies;
  }

  async upsert(drafts: readonly ItemDraft[], fence?: Fence): Promise<UpsertOutcome> {
    if (drafts.length > MAX_UPSERT_DRAFTS)
      throw new RangeError(`expected at most ${MAX_UPSERT_DRAFTS} drafts, got ${drafts.length}`);
    const outcome = await this.#dependencies.writer.change(() => this.#upsert(drafts, fence));
    await yieldToLoop();
    return outcome;
  }

  async removeExcept(externalPlaylistId: number, keep: ReadonlySet<number>, fence?: Fence): Promise<number> {
    const { writer, tombstones, index } = this.#dependencies;
    const { columns } = index;
    // CHOICE(locked): a refresh keeps locked items; only the user deletes them.
    const stays = (id: number) => keep.has(id) || columns.has(columns.slotOf(id), FLAGS.locked);
    const removed = await this.#remove(this.#of(externalPlaylistId), fence, stays);
    await writer.queue.run(async () => {
      await writer.removeTombstones(tombstones.unlisted(externalPlaylistId, false), fence);
      tombstones.endPass(externalPlaylistId);
    });
    return removed;
  }

  async removeAll(externalPlaylistId: number): Promise<number> {
    const { writer, tombstones } = this.#dependencies;
    const removed = await this.#remove(this.#of(externalPlaylistId), undefined);
    await writer.queue.run(() => writer.removeTombstones(tombstones.unlisted(externalPlaylistId, true)));
    return removed;
  }

  countOf(externalPlaylistId: number): number {
    return this.#dependencies.index.countOf(externalPlaylistId);
  }

  async #upsert(drafts: readonly ItemDraft[], fence: Fence | undefined): Promise<UpsertOutcome> {
    const { writer, clock } = this.#dependencies;
    const now = clock.unixSeconds();
    const { ids, plans } = this.#plan(drafts);
    await yieldToLoop();
    const changes: StoredItem[] = [];
    const additions: StoredItem[] = [];
    for (const { id, action, draft, members } of plans) {
      const kept = action === "add" ? undefined : await writer.read(id!, true);
      const before = kept && action === "adopt" ? adopted(kept, draft) : kept;
      const changed = before && (withSource(before, members, now) ?? (before === kept ? undefined : before));
      // A missing or damaged record is written again.
      const item = before ? changed : newItem(id!, members, originOf(draft), now);
      if (item === undefined) continue;
      (action === "add" ? additions : changes).push(item);
    }
    // First, because they are refused if another engine has changed these items, and then all drafts are compared again.
    await writer.put(changes, fence);
    const written = await writer.put(additions, fence);
    const moved = new Map(additions.map(({ item }, i) => [item.id, written[i]!.item.id]));
    const finalIds = ids.map((id) => id && (moved.get(id) ?? id));
    return { ids: finalIds, added: additions.length, changed: changes.length };
  }

  /** Compares drafts with the index, without reading records. Returns plans only for drafts that need a change. */
  #plan(drafts: readonly ItemDraft[]): { ids: (number | undefined)[]; plans: Plan[] } {
    const { writer } = this.#dependencies;
    const plans: Plan[] = [];
    /** A source key that occurs twice gets one item. */
    const seen = new Map<string, number | undefined>();
    const taken = new Set<number>();
    const ids = drafts.map((draft) => {
      const { externalPlaylistId, sourceKey } = originOf(draft);
      const name = `${externalPlaylistId} ${sourceKey}`;
      if (sourceKey !== null && seen.has(name)) return seen.get(name);
      const plan = this.#planOne(draft, taken);
      if (plan !== undefined && plan.action !== "none") plans.push(plan);
      if (sourceKey !== null) seen.set(name, plan?.id);
      return plan?.id;
    });
    writer.checkCapacity(plans.filter(({ action }) => action === "add").length);
    return { ids, plans };
  }

  /** `taken` collects the ids of items that this batch adopts, so that each is adopted once. */
  #planOne(draft: ItemDraft, taken: Set<number>): Plan | undefined {
    const { index, tombstones, writer } = this.#dependencies;
    const { externalPlaylistId, sourceKey } = originOf(draft);
    const members = fitDraft(draft);
    if (members === undefined) return undefined;
    if (sourceKey === null) return { id: writer.takeId(), action: "add", draft, members };
    if (sourceKey.length > MAX_SOURCE_KEY) return undefined;
    const slot = index.findSource(externalPlaylistId, sourceKey);
    if (slot === -1) {
      if (tombstones.matches(externalPlaylistId, sourceKey)) return undefined;
      const own = index.findOwn(members);
      const ownId = own === -1 ? undefined : index.columns.ids[own]!;
      if (ownId !== undefined && !taken.has(ownId)) {
        taken.add(ownId);
        return { id: ownId, action: "adopt", draft, members };
      }
      return { id: writer.takeId(), action: "add", draft, members };
    }
    const id = index.columns.ids[slot]!;
    const isSame = index.columns.has(slot, FLAGS.locked) || index.isSameSource(slot, members);
    return { id, action: isSame ? "none" : "compare", draft, members };
  }

  #of(externalPlaylistId: number): number[] {
    const { index } = this.#dependencies;
    return (["active", "trash"] as const).flatMap((state) =>
      findItems(index, { externalPlaylistId, state, sort: "added" }),
    );
  }

  /** Deletes items permanently in batches, except those that `stays` selects when their batch is deleted. */
  async #remove(
    ids: readonly number[],
    fence: Fence | undefined,
    stays: (id: number) => boolean = () => false,
  ): Promise<number> {
    const { writer, index } = this.#dependencies;
    let removed = 0;
    for (let at = 0; at < ids.length; at += BATCH_ITEMS) {
      removed += await writer.change(async () => {
        const deletable = ids.slice(at, at + BATCH_ITEMS).filter((id) => {
          return index.columns.slotOf(id) !== -1 && !stays(id);
        });
        await writer.remove(deletable, { withTombstones: false, fence });
        return deletable.length;
      });
      await yieldToLoop();
    }
    return removed;
  }
}

function originOf({
  externalPlaylistId = -1,
  sourceKey = null,
}: ItemDraft): Pick<Item, "externalPlaylistId" | "sourceKey"> {
  return { externalPlaylistId, sourceKey };
}

/**
 * CHOICE(adopted-items): the user's item becomes an item of the playlist that lists the same title and content, so that
 * subscribing to a list that was imported before duplicates nothing. It keeps its id, its flags and the user's edits.
 */
function adopted({ item, source }: StoredItem, draft: ItemDraft): StoredItem {
  return { item: { ...item, ...originOf(draft) }, source };
}
