import { assert } from "../base/assert.ts";
import { readU32 } from "../base/bytes.ts";
import type { Sha1 } from "../base/ids.ts";
import type { Item } from "./contract.ts";
import { Chains } from "./item-chains.ts";
import { sourceOf } from "./item-changes.ts";
import { FLAGS, ItemColumns } from "./item-columns.ts";
import { contentHash, groupHash } from "./item-figures.ts";
import type { TextHash } from "./item-hash.ts";
import { SOURCE_MEMBERS, type SourceMembers } from "./item-members.ts";
import { foldText, sortKey } from "./item-names.ts";
import { TitleOrder } from "./item-order.ts";
import type { KeptItem } from "./item-record.ts";
import { TitleSearch } from "./item-search.ts";
import { Words } from "./item-words.ts";

/** Gaps are closed when there are so many, and a quarter of all slots. */
const MIN_GAPS = 1024;

/**
 * What is held in memory of all items: enough to choose, sort and compare them; the rest is read when it is shown.
 * Slots are good until the next `tidy`.
 */
export class ItemIndex {
  readonly columns = new ItemColumns();
  readonly owners = new Words();
  readonly categories = new Words();
  /** Subcategory and tags of an item, each between line ends. */
  readonly labels = new Words();
  readonly search = new TitleSearch(() => this.columns.titles);
  readonly #order = new TitleOrder((slot) => this.columns.sortKeys[slot]!);
  readonly #groups = new Chains();
  readonly #sources = new Chains();
  /** Items of an external playlist that are not in the trash. */
  readonly #counts = new Map<number, number>();
  readonly #sha1: Sha1;
  readonly #hash: TextHash;
  #gaps = 0;

  constructor(sha1: Sha1, hash: TextHash) {
    this.#sha1 = sha1;
    this.#hash = hash;
  }

  /** How many items there are. */
  get size(): number {
    return this.columns.count - this.#gaps;
  }

  /** All slots in the order of titles, gaps among them. A view, good until the next change. */
  get byTitle(): Uint32Array {
    return this.#order.slots;
  }

  /** Adds items, whose ids are larger than all before, or takes over what has changed of those that are there. */
  put(batch: readonly KeptItem[]): void {
    const { columns } = this;
    const placed: number[] = [];
    let isMoving = false;
    for (const kept of batch) {
      const known = columns.slotOf(kept.item.id);
      const slot = known === -1 ? this.#append(kept.item.id) : known;
      if (known !== -1) this.#forget(slot);
      const title = foldText(kept.item.title);
      const key = sortKey(title);
      const isPlaced = known !== -1 && columns.sortKeys[slot] === key;
      columns.flags[slot] = flagsOf(kept.item) | (isPlaced ? 0 : FLAGS.moving);
      columns.titles[slot] = title;
      this.search.changed(slot);
      columns.sortKeys[slot] = key === title ? title : key;
      this.#remember(slot, kept);
      if (isPlaced) continue;
      placed.push(slot);
      isMoving ||= known !== -1;
    }
    if (isMoving) this.#order.keep((slot) => !columns.has(slot, FLAGS.moving));
    for (const slot of placed) columns.flags[slot]! &= ~FLAGS.moving;
    this.#order.insert(placed);
  }

  /** Takes items out. */
  drop(ids: readonly number[]): void {
    for (const id of ids) {
      const slot = this.columns.slotOf(id);
      if (slot === -1) continue;
      this.#forget(slot);
      this.columns.flags[slot] = FLAGS.gone;
      // Sort keys stay until the gaps are closed: the order is searched by them.
      this.columns.titles[slot] = "";
      this.search.changed(slot);
      this.#gaps++;
    }
  }

  /** Closes the gaps where there are many: milliseconds, that a caller should not spend together with others. */
  tidy(): void {
    if (this.#gaps <= MIN_GAPS || this.#gaps <= this.columns.count / 4) return;
    this.#order.renumber(this.columns.compact());
    this.search.allChanged();
    this.#gaps = 0;
    this.#rebuildChains(this.columns.count);
  }

  /** The slot of what a source names so, or -1. */
  findSource(externalPlaylistId: number, sourceKey: string): number {
    const { columns } = this;
    this.#hash.of(`${externalPlaylistId} ${sourceKey}`);
    const { low, high } = this.#hash;
    for (let slot = this.#sources.first(low); slot !== -1; slot = columns.nextOfSource[slot]!) {
      const isIt = columns.sourceLow[slot] === low && columns.sourceHigh[slot] === high;
      if (isIt && columns.has(slot, FLAGS.sourced)) return slot;
    }
    return -1;
  }

  /** Whether the source says what it said last. */
  isSameSource(slot: number, members: SourceMembers): boolean {
    this.#print(members);
    const { low, high } = this.#hash;
    return this.columns.printLow[slot] === low && this.columns.printHigh[slot] === high;
  }

  /** The active slots of an owner in the group with these bits, newest first; at most `limit` slots are looked at. */
  sourcesOf(owner: number, low: number, high: number, limit: number): number[] {
    const { columns } = this;
    const found: number[] = [];
    let looked = 0;
    for (let slot = this.#groups.first(low); slot !== -1; slot = columns.nextOfGroup[slot]!) {
      if (++looked > limit) break;
      if (columns.groupLow[slot] !== low || columns.groupHigh[slot] !== high) continue;
      if (columns.owners[slot] === owner && !columns.has(slot, FLAGS.trash | FLAGS.gone)) found.push(slot);
    }
    return found;
  }

  /** Items of an external playlist that are not in the trash. */
  countOf(externalPlaylistId: number): number {
    return this.#counts.get(externalPlaylistId) ?? 0;
  }

  #append(id: number): number {
    const { columns } = this;
    assert(
      columns.count === 0 || columns.ids[columns.count - 1]! < id,
      "an id that is new is larger than all before",
    );
    const slot = columns.append();
    columns.ids[slot] = id;
    if (this.#groups.isFull(columns.count)) this.#rebuildChains(slot);
    return slot;
  }

  #remember(slot: number, kept: KeptItem): void {
    const { columns } = this;
    const { item } = kept;
    columns.owners[slot] = this.owners.take(item.owner);
    columns.categories[slot] = this.categories.take(item.category ?? "");
    columns.labels[slot] = this.labels.take(`\n${[item.subcategory, ...item.tags].join("\n")}\n`);
    columns.playlists[slot] = item.externalPlaylistId;
    columns.updatedAt[slot] = item.updatedAt;
    if (item.deletedAt === null) this.#count(item.externalPlaylistId, 1);
    const group = groupHash(item, this.#sha1);
    columns.groupHigh[slot] = readU32(group, 0);
    columns.groupLow[slot] = readU32(group, 4);
    const content = contentHash(item, this.#sha1);
    columns.contentHigh[slot] = readU32(content, 0);
    columns.contentLow[slot] = readU32(content, 4);
    this.#groups.add(slot, columns.groupLow[slot]!, columns.nextOfGroup);
    columns.nextOfSource[slot] = -1;
    if (item.sourceKey === null) return;
    this.#hash.of(`${item.externalPlaylistId} ${item.sourceKey}`);
    columns.sourceLow[slot] = this.#hash.low;
    columns.sourceHigh[slot] = this.#hash.high;
    this.#sources.add(slot, this.#hash.low, columns.nextOfSource);
    this.#print(sourceOf(kept));
    columns.printLow[slot] = this.#hash.low;
    columns.printHigh[slot] = this.#hash.high;
  }

  #forget(slot: number): void {
    const { columns } = this;
    this.owners.give(columns.owners[slot]!);
    this.categories.give(columns.categories[slot]!);
    this.labels.give(columns.labels[slot]!);
    if (!columns.has(slot, FLAGS.trash)) this.#count(columns.playlists[slot]!, -1);
    this.#groups.remove(slot, columns.groupLow[slot]!, columns.nextOfGroup);
    if (columns.has(slot, FLAGS.sourced))
      this.#sources.remove(slot, columns.sourceLow[slot]!, columns.nextOfSource);
  }

  #count(externalPlaylistId: number, more: number): void {
    const count = this.countOf(externalPlaylistId) + more;
    if (count === 0) this.#counts.delete(externalPlaylistId);
    else this.#counts.set(externalPlaylistId, count);
  }

  #print(members: SourceMembers): void {
    this.#hash.of(JSON.stringify(SOURCE_MEMBERS.map((name) => members[name])));
  }

  #rebuildChains(count: number): void {
    const { columns } = this;
    const isThere = (slot: number) => !columns.has(slot, FLAGS.gone);
    this.#groups.rebuild(count, columns.groupLow, columns.nextOfGroup, isThere);
    const isSourced = (slot: number) => columns.has(slot, FLAGS.sourced);
    this.#sources.rebuild(count, columns.sourceLow, columns.nextOfSource, isSourced);
  }
}

function flagsOf(item: Item): number {
  return (
    (item.isFavorite ? FLAGS.favorite : 0) |
    (item.isEnabled ? FLAGS.enabled : 0) |
    (item.isLocked ? FLAGS.locked : 0) |
    (item.deletedAt === null ? 0 : FLAGS.trash) |
    (item.isLive === 1 ? FLAGS.live : 0) |
    (item.content.transport === "bt" ? FLAGS.swarm : 0) |
    (item.sourceKey === null ? 0 : FLAGS.sourced)
  );
}
