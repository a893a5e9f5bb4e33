import type { Clock } from "../runtime/contract.ts";
import type { Item, ItemDraft } from "./contract.ts";
import { newItem, withSource } from "./item-changes.ts";
import { FLAGS } from "./item-columns.ts";
import { findItems } from "./item-filter.ts";
import type { ItemIndex } from "./item-index.ts";
import { fitDraft, type SourceMembers } from "./item-members.ts";
import { pause } from "./item-pause.ts";
import type { KeptItem } from "./item-record.ts";
import { type ItemSync, MAX_UPSERT_DRAFTS, type UpsertOutcome } from "./item-sync.ts";
import type { Tombstones } from "./item-tombstones.ts";
import type { ItemWriter } from "./item-writer.ts";
import { BATCH_ITEMS, MAX_SOURCE_KEY } from "./limits.ts";

/** What imports and refreshes are made of. */
export interface ItemRefreshParts {
  readonly clock: Clock;
  readonly index: ItemIndex;
  readonly tombstones: Tombstones;
  readonly writer: ItemWriter;
}

/** What is to be done about a draft. */
interface Plan {
  /** Undefined where it is not kept. */
  readonly id: number | undefined;
  readonly doing: "nothing" | "add" | "compare";
  readonly draft: ItemDraft;
  readonly members: SourceMembers;
}

/** Brings what sources list, and takes what they drop. */
export class ItemRefresh implements ItemSync {
  readonly #parts: ItemRefreshParts;

  constructor(parts: ItemRefreshParts) {
    this.#parts = parts;
  }

  async upsert(drafts: readonly ItemDraft[]): Promise<UpsertOutcome> {
    if (drafts.length > MAX_UPSERT_DRAFTS)
      throw new RangeError(`expected at most ${MAX_UPSERT_DRAFTS} drafts, got ${drafts.length}`);
    const outcome = await this.#parts.writer.turns.run(() => this.#upsert(drafts));
    await pause();
    return outcome;
  }

  async removeExcept(externalPlaylistId: number, keep: ReadonlySet<number>): Promise<number> {
    const { writer, tombstones } = this.#parts;
    const removed = await this.#remove(this.#of(externalPlaylistId).filter((id) => !keep.has(id)));
    await writer.turns.run(async () => {
      await writer.unbury(tombstones.unlisted(externalPlaylistId, false));
      tombstones.endPass(externalPlaylistId);
    });
    return removed;
  }

  async removeAll(externalPlaylistId: number): Promise<number> {
    const { writer, tombstones } = this.#parts;
    const removed = await this.#remove(this.#of(externalPlaylistId));
    const locked = this.#of(externalPlaylistId);
    for (let at = 0; at < locked.length; at += BATCH_ITEMS) {
      await writer.turns.run(async () => {
        const items = await writer.readMany(locked.slice(at, at + BATCH_ITEMS));
        await writer.put(items.map(detached));
      });
    }
    await writer.turns.run(() => writer.unbury(tombstones.unlisted(externalPlaylistId, true)));
    return removed;
  }

  countOf(externalPlaylistId: number): number {
    return this.#parts.index.countOf(externalPlaylistId);
  }

  async #upsert(drafts: readonly ItemDraft[]): Promise<UpsertOutcome> {
    const { writer, clock } = this.#parts;
    const now = clock.unixSeconds();
    const { ids, plans } = this.#plan(drafts);
    await pause();
    const items: KeptItem[] = [];
    let added = 0;
    for (const { id, doing, draft, members } of plans) {
      const before = doing === "compare" ? await writer.read(id!) : undefined;
      // A record that has gone or is damaged is written anew.
      const item = before ? withSource(before, members, now) : newItem(id!, members, originOf(draft), now);
      if (item === undefined) continue;
      items.push(item);
      if (doing === "add") added++;
    }
    await writer.put(items);
    return { ids, added, changed: items.length - added };
  }

  /** Compares drafts with the index, and reads nothing. Only what has to be done is planned. */
  #plan(drafts: readonly ItemDraft[]): { ids: (number | undefined)[]; plans: Plan[] } {
    const { writer } = this.#parts;
    const plans: Plan[] = [];
    /** A list that names the same thing twice gets one item. */
    const seen = new Map<string, number | undefined>();
    const ids = drafts.map((draft) => {
      const { externalPlaylistId, sourceKey } = originOf(draft);
      const name = `${externalPlaylistId} ${sourceKey}`;
      if (sourceKey !== null && seen.has(name)) return seen.get(name);
      const plan = this.#planOne(draft);
      if (plan !== undefined && plan.doing !== "nothing") plans.push(plan);
      if (sourceKey !== null) seen.set(name, plan?.id);
      return plan?.id;
    });
    writer.makeRoom(plans.filter(({ doing }) => doing === "add").length);
    return { ids, plans };
  }

  #planOne(draft: ItemDraft): Plan | undefined {
    const { index, tombstones, writer } = this.#parts;
    const { externalPlaylistId, sourceKey } = originOf(draft);
    const members = fitDraft(draft);
    if (members === undefined) return undefined;
    if (sourceKey === null) return { id: writer.takeId(), doing: "add", draft, members };
    if (sourceKey.length > MAX_SOURCE_KEY) return undefined;
    const slot = index.findSource(externalPlaylistId, sourceKey);
    if (slot === -1) {
      if (tombstones.meets(externalPlaylistId, sourceKey)) return undefined;
      return { id: writer.takeId(), doing: "add", draft, members };
    }
    const id = index.columns.ids[slot]!;
    const isSame = index.columns.has(slot, FLAGS.locked) || index.isSameSource(slot, members);
    return { id, doing: isSame ? "nothing" : "compare", draft, members };
  }

  #of(externalPlaylistId: number): number[] {
    const { index } = this.#parts;
    return (["active", "trash"] as const).flatMap((state) =>
      findItems(index, { externalPlaylistId, state, sort: "added" }),
    );
  }

  /** Deletes for good, a batch at a time, what is not locked by then. */
  async #remove(ids: readonly number[]): Promise<number> {
    const { writer, index } = this.#parts;
    let removed = 0;
    for (let at = 0; at < ids.length; at += BATCH_ITEMS) {
      await writer.turns.run(async () => {
        const going = ids.slice(at, at + BATCH_ITEMS).filter((id) => {
          const slot = index.columns.slotOf(id);
          return slot !== -1 && !index.columns.has(slot, FLAGS.locked);
        });
        await writer.remove(going, { withTombstones: false });
        removed += going.length;
      });
      await pause();
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

/** CHOICE(locked-items): a locked item whose playlist is gone is the user's own from now on. */
function detached({ item }: KeptItem): KeptItem {
  return { item: { ...item, externalPlaylistId: -1, sourceKey: null }, source: {} };
}
