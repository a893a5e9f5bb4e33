import { assert } from "../base/assert.ts";
import { readU32 } from "../base/bytes.ts";
import type { Sha1 } from "../base/ids.ts";
import type { Item } from "./contract.ts";
import { sourceOf } from "./item-changes.ts";
import { FLAGS, ItemColumns } from "./item-columns.ts";
import { contentHash, groupHash } from "./item-figures.ts";
import type { TextHash } from "./item-hash.ts";
import { SOURCE_MEMBERS, type SourceMembers } from "./item-members.ts";
import { foldText, ownCopy, sortKey } from "./item-names.ts";
import { TitleOrder } from "./item-order.ts";
import type { StoredItem } from "./item-record.ts";
import { TitleSearch } from "./item-search.ts";
import { MAX_SOURCES } from "./limits.ts";

/** Gaps are removed if there are this many, and more than a quarter of all slots. */
const MIN_GAPS = 1024;
const FIRST_BUCKETS = 1024;

/**
 * The in-memory index of all items: enough to filter, sort and compare them; everything else is read from the store.
 * Slot numbers are valid until the next `tidy`.
 */
export class ItemIndex {
  readonly columns = new ItemColumns();
  readonly owners = new TextTable();
  readonly categories = new TextTable();
  /** Subcategory and tags of an item, each between line feeds. */
  readonly labels = new TextTable();
  readonly search = new TitleSearch(() => this.columns.titles);
  readonly #order = new TitleOrder((slot) => this.columns.sortKeys[slot]!);
  readonly #groups = new Chains();
  readonly #sources = new Chains();
  /** Number of items outside the trash by external playlist. */
  readonly #counts = new Map<number, number>();
  readonly #sha1: Sha1;
  readonly #hash: TextHash;
  #gaps = 0;

  constructor(sha1: Sha1, hash: TextHash) {
    this.#sha1 = sha1;
    this.#hash = hash;
  }

  /** Number of items. */
  get size(): number {
    return this.columns.count - this.#gaps;
  }

  /** All slots in the order of titles, including gaps. A view, valid until the next change. */
  get byTitle(): Uint32Array {
    return this.#order.slots;
  }

  /** Returns the place in `byTitle` of the first slot behind an item, which may have been changed or removed. */
  placeAfter({ sortKey, id }: { readonly sortKey: string; readonly id: number }): number {
    return this.#order.placeFor(sortKey, this.columns.slotAfter(id));
  }

  /** Adds or updates items. New items with larger ids than all before are added in less time than others. */
  put(batch: readonly StoredItem[]): void {
    const { columns } = this;
    const placed: number[] = [];
    let isMoving = this.#makeGaps(batch);
    for (const kept of batch) {
      const known = columns.slotOf(kept.item.id);
      const slot = known === -1 ? this.#add(kept.item.id) : known;
      if (known !== -1) this.#clearSlot(slot);
      const title = foldText(kept.item.title);
      const key = sortKey(title);
      const isPlaced = known !== -1 && columns.sortKeys[slot] === key;
      columns.flags[slot] = flagsOf(kept.item) | (isPlaced ? 0 : FLAGS.moving);
      columns.titles[slot] = title;
      this.search.changed(slot);
      columns.sortKeys[slot] = key === title ? title : key;
      this.#fillSlot(slot, kept);
      if (isPlaced) continue;
      placed.push(slot);
      isMoving ||= known !== -1;
    }
    if (isMoving) this.#order.keep((slot) => !columns.has(slot, FLAGS.moving));
    for (const slot of placed) columns.flags[slot]! &= ~FLAGS.moving;
    this.#order.insert(placed);
  }

  /** Removes items. */
  drop(ids: readonly number[]): void {
    for (const id of ids) {
      const slot = this.columns.slotOf(id);
      if (slot === -1) continue;
      this.#clearSlot(slot);
      this.columns.flags[slot] = FLAGS.gone;
      // The sort key stays until the gap is removed, because binary search in the order uses it.
      this.columns.titles[slot] = "";
      this.search.changed(slot);
      this.#gaps++;
    }
  }

  /** Removes gaps if there are many. Takes milliseconds, so yield to the event loop before. */
  tidy(): void {
    if (this.#gaps <= MIN_GAPS || this.#gaps <= this.columns.count / 4) return;
    this.#order.renumber(this.columns.compact());
    this.search.allChanged();
    this.#gaps = 0;
    this.#rebuildChains(this.columns.count);
  }

  /** Returns the slot of an external playlist's item by its source key, or -1. */
  findSource(externalPlaylistId: number, sourceKey: string): number {
    const { columns } = this;
    this.#hash.of(`${externalPlaylistId} ${sourceKey}`);
    const { low, high } = this.#hash;
    for (let slot = this.#sources.first(low); slot !== -1; slot = columns.nextOfSource[slot]!) {
      const isMatch = columns.sourceLow[slot] === low && columns.sourceHigh[slot] === high;
      if (isMatch && columns.has(slot, FLAGS.sourced)) return slot;
    }
    return -1;
  }

  /** Returns true if `members` equals the source's last version. */
  isSameSource(slot: number, members: SourceMembers): boolean {
    this.#hashSource(members);
    const { low, high } = this.#hash;
    return this.columns.printLow[slot] === low && this.columns.printHigh[slot] === high;
  }

  /** Returns the owner's active slots of the group with this hash, newest first; examines at most `limit` slots. */
  sourcesOf(owner: number, low: number, high: number, limit: number): number[] {
    const { columns } = this;
    const found: number[] = [];
    let examined = 0;
    for (let slot = this.#groups.first(low); slot !== -1; slot = columns.nextOfGroup[slot]!) {
      if (++examined > limit) break;
      if (columns.groupLow[slot] !== low || columns.groupHigh[slot] !== high) continue;
      if (columns.owners[slot] === owner && !columns.has(slot, FLAGS.trash | FLAGS.gone)) found.push(slot);
    }
    return found;
  }

  /** Returns the slot of the owner's active item that has this title and content and no external playlist, or -1. */
  findOwn(members: SourceMembers): number {
    const { columns } = this;
    const owner = this.owners.find(members.owner);
    if (owner === undefined) return -1;
    const group = groupHash(members, this.#sha1);
    const content = contentHash(members, this.#sha1);
    const isCopy = (slot: number) =>
      columns.playlists[slot] === -1 &&
      columns.contentHigh[slot] === readU32(content, 0) &&
      columns.contentLow[slot] === readU32(content, 4) &&
      columns.titles[slot] === foldText(members.title);
    const slots = this.sourcesOf(owner, readU32(group, 4), readU32(group, 0), MAX_SOURCES);
    return slots.find(isCopy) ?? -1;
  }

  /** Number of items of an external playlist outside the trash. */
  countOf(externalPlaylistId: number): number {
    return this.#counts.get(externalPlaylistId) ?? 0;
  }

  /** Makes gaps for new items with smaller ids, which another engine has added. Returns true if some item has a gap. */
  #makeGaps(batch: readonly StoredItem[]): boolean {
    const { columns } = this;
    const last = columns.count === 0 ? -1 : columns.ids[columns.count - 1]!;
    const late = batch.map(({ item }) => item.id).filter((id) => id <= last && columns.slotOf(id) === -1);
    const missing = late.filter((id) => columns.ids[columns.slotAfter(id - 1)] !== id).sort((a, b) => a - b);
    if (missing.length > 0) {
      this.#order.renumber(columns.insertGaps(missing));
      this.search.allChanged();
      this.#gaps += missing.length;
      this.#rebuildChains(columns.count);
    }
    return late.length > 0;
  }

  /** Returns a slot for a new item: its gap, or one at the end. */
  #add(id: number): number {
    const { columns } = this;
    const gap = columns.slotAfter(id - 1);
    if (gap < columns.count) {
      assert(columns.ids[gap] === id, "an item with a smaller id has a gap");
      this.#gaps--;
      return gap;
    }
    const slot = columns.append();
    columns.ids[slot] = id;
    if (this.#groups.isFull(columns.count)) this.#rebuildChains(slot);
    return slot;
  }

  #fillSlot(slot: number, kept: StoredItem): void {
    const { columns } = this;
    const { item } = kept;
    columns.owners[slot] = this.owners.acquire(item.owner);
    columns.categories[slot] = this.categories.acquire(item.category ?? "");
    columns.labels[slot] = this.labels.acquire(`\n${[item.subcategory, ...item.tags].join("\n")}\n`);
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
    this.#hashSource(sourceOf(kept));
    columns.printLow[slot] = this.#hash.low;
    columns.printHigh[slot] = this.#hash.high;
  }

  #clearSlot(slot: number): void {
    const { columns } = this;
    this.owners.release(columns.owners[slot]!);
    this.categories.release(columns.categories[slot]!);
    this.labels.release(columns.labels[slot]!);
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

  #hashSource(members: SourceMembers): void {
    this.#hash.of(JSON.stringify(SOURCE_MEMBERS.map((name) => members[name])));
  }

  #rebuildChains(count: number): void {
    const { columns } = this;
    const isPresent = (slot: number) => !columns.has(slot, FLAGS.gone);
    this.#groups.rebuild(count, columns.groupLow, columns.nextOfGroup, isPresent);
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
    (item.sourceKey === null ? 0 : FLAGS.sourced) |
    (item.content.infohash === null ? 0 : FLAGS.hashed)
  );
}

/** Interns texts that many items share as numbers, with reference counts; the number of an unused text is reused. */
class TextTable {
  readonly #numbers = new Map<string, number>();
  readonly #texts: string[] = [];
  readonly #uses: number[] = [];
  readonly #free: number[] = [];

  /** Returns the number of a text and counts one reference. */
  acquire(text: string): number {
    const known = this.#numbers.get(text);
    if (known !== undefined) {
      this.#uses[known]! += 1;
      return known;
    }
    const number = this.#free.pop() ?? this.#texts.length;
    const own = ownCopy(text);
    this.#numbers.set(own, number);
    this.#texts[number] = own;
    this.#uses[number] = 1;
    return number;
  }

  /** Removes one reference. */
  release(number: number): void {
    this.#uses[number]! -= 1;
    if (this.#uses[number]! > 0) return;
    this.#numbers.delete(this.#texts[number]!);
    this.#texts[number] = "";
    this.#free.push(number);
  }

  /** Returns the number of a text; undefined if it is unused. */
  find(text: string): number | undefined {
    return this.#numbers.get(text);
  }

  /** Returns the numbers of all texts that contain `part`. */
  containing(part: string): ReadonlySet<number> {
    const found = new Set<number>();
    for (const [text, number] of this.#numbers) if (text.includes(part)) found.add(number);
    return found;
  }
}

/** A hash table over columns: the slots of a bucket are chained through a column of links, the newest first. */
class Chains {
  #heads = new Int32Array(FIRST_BUCKETS).fill(-1);

  /** Returns the first slot of the bucket of a hash, or -1. */
  first(bits: number): number {
    return this.#heads[bits & (this.#heads.length - 1)]!;
  }

  add(slot: number, bits: number, links: Int32Array): void {
    const bucket = bits & (this.#heads.length - 1);
    links[slot] = this.#heads[bucket]!;
    this.#heads[bucket] = slot;
  }

  remove(slot: number, bits: number, links: Int32Array): void {
    const bucket = bits & (this.#heads.length - 1);
    if (this.#heads[bucket] === slot) {
      this.#heads[bucket] = links[slot]!;
      return;
    }
    for (let at = this.#heads[bucket]!; at !== -1; at = links[at]!) {
      if (links[at] !== slot) continue;
      links[at] = links[slot]!;
      return;
    }
  }

  /** Returns true if the table is too small for this number of slots. */
  isFull(slots: number): boolean {
    return slots > this.#heads.length;
  }

  /** Rebuilds the table from the slots `[0, count)` for which `has` is true, with room for as many more. */
  rebuild(count: number, bits: Uint32Array, links: Int32Array, has: (slot: number) => boolean): void {
    this.#heads = new Int32Array(2 ** Math.max(10, Math.ceil(Math.log2(2 * count + 1)))).fill(-1);
    for (let slot = 0; slot < count; slot++) if (has(slot)) this.add(slot, bits[slot]!, links);
  }
}
