import { fromHex, readU32 } from "../base/bytes.ts";
import type { ItemQuery } from "./contract.ts";
import { FLAGS } from "./item-columns.ts";
import type { ItemIndex } from "./item-index.ts";
import { foldText } from "./item-names.ts";

const SWARM = FLAGS.swarm | FLAGS.hashed;

type Test = (slot: number) => boolean;

/** A place in the order of a query: that of an item, which may have been changed or removed since. */
export interface ItemPosition {
  readonly id: number;
  readonly sortKey: string;
}

/** Returns the ids of all matches in the requested order. Uses only the index, without offset and limit. */
export function findItems(index: ItemIndex, query: ItemQuery): number[] {
  const { ids } = index.columns;
  const found: number[] = [];
  visitMatches(index, query, undefined, (slot) => {
    found.push(ids[slot]!);
    return true;
  });
  return found;
}

/** Returns the number of all matches, and the ids of those within offset and limit. */
export function findPage(index: ItemIndex, query: ItemQuery): { total: number; ids: number[] } {
  const { offset = 0, limit = Number.POSITIVE_INFINITY } = query;
  const ids: number[] = [];
  let total = 0;
  visitMatches(index, query, undefined, (slot) => {
    if (total >= offset && total < offset + limit) ids.push(index.columns.ids[slot]!);
    total++;
    return true;
  });
  return { total, ids };
}

/** Returns the ids of at most `count` matches behind a position, without the first `skip` ones, and the position of the last;
 * undefined if no more matches follow. Ignores offset and limit. */
export function findNext(
  index: ItemIndex,
  query: ItemQuery,
  after: ItemPosition | undefined,
  { skip, count }: { readonly skip: number; readonly count: number },
): { ids: number[]; last: ItemPosition | undefined } {
  const { columns } = index;
  const ids: number[] = [];
  let last: ItemPosition | undefined;
  let seen = 0;
  visitMatches(index, query, after, (slot) => {
    if (seen++ < skip) return true;
    if (ids.length === count) {
      const id = ids[count - 1]!;
      last = { id, sortKey: columns.sortKeys[columns.slotOf(id)]! };
      return false;
    }
    ids.push(columns.ids[slot]!);
    return true;
  });
  return { ids, last };
}

/** Calls `visit` for the slots of the matches behind a position, in the requested order, until it returns false. */
function visitMatches(
  index: ItemIndex,
  query: ItemQuery,
  after: ItemPosition | undefined,
  visit: (slot: number) => boolean,
): void {
  const tests = testsOf(index, query);
  if (tests === undefined) return;
  const { columns } = index;
  const isMatch = (slot: number): boolean => {
    for (const test of tests) if (!test(slot)) return false;
    return true;
  };
  if (query.sort === "added") {
    for (let slot = after ? columns.slotAfter(after.id) : 0; slot < columns.count; slot++)
      if (isMatch(slot) && !visit(slot)) return;
    return;
  }
  const order = index.byTitle;
  for (let at = after ? index.placeAfter(after) : 0; at < order.length; at++)
    if (isMatch(order[at]!) && !visit(order[at]!)) return;
}

/** Returns the tests of a query, cheapest first; undefined if nothing can match, for example an unknown owner. */
function testsOf(index: ItemIndex, query: ItemQuery): Test[] | undefined {
  const { columns } = index;
  const { owner, ids, name, category, subcategory, label, hash, isFavorite, isEnabled, externalPlaylistId } =
    query;
  const mask =
    FLAGS.gone |
    FLAGS.trash |
    (isFavorite === undefined ? 0 : FLAGS.favorite) |
    (isEnabled === undefined ? 0 : FLAGS.enabled) |
    (query.isSwarm ? SWARM : 0);
  const wanted =
    (query.state === "trash" ? FLAGS.trash : 0) |
    (isFavorite === true ? FLAGS.favorite : 0) |
    (isEnabled === true ? FLAGS.enabled : 0) |
    (query.isSwarm ? SWARM : 0);
  const { flags, owners, categories, labels, playlists } = columns;
  const tests: Test[] = [(slot) => (flags[slot]! & mask) === wanted];
  if (owner !== undefined) {
    const number = index.owners.find(owner);
    if (number === undefined) return undefined;
    tests.push((slot) => owners[slot] === number);
  }
  if (category !== undefined) {
    const number = index.categories.find(category);
    if (number === undefined) return undefined;
    tests.push((slot) => categories[slot] === number);
  }
  if (label !== undefined) {
    const any = (typeof label === "string" ? [label] : label).map((text) => ({
      number: index.categories.find(text),
      numbers: index.labels.containing(`\n${text}\n`),
    }));
    tests.push((slot) =>
      any.some(({ number, numbers }) => categories[slot] === number || numbers.has(labels[slot]!)),
    );
  }
  if (externalPlaylistId !== undefined) tests.push((slot) => playlists[slot] === externalPlaylistId);
  if (hash !== undefined) {
    const bytes = fromHex(hash);
    if (bytes?.length !== 20) return undefined;
    const [high, low] = [readU32(bytes, 0), readU32(bytes, 4)];
    const { groupLow, groupHigh, contentLow, contentHigh } = columns;
    tests.push(
      (slot) =>
        (groupLow[slot] === low && groupHigh[slot] === high) ||
        (contentLow[slot] === low && contentHigh[slot] === high),
    );
  }
  if (subcategory !== undefined) {
    const numbers = index.labels.containing(`\n${subcategory}\n`);
    if (numbers.size === 0) return undefined;
    tests.push((slot) => numbers.has(labels[slot]!));
  }
  if (ids !== undefined) {
    const named = new Uint8Array(columns.count);
    for (const id of ids) {
      const slot = columns.slotOf(id);
      if (slot !== -1) named[slot] = 1;
    }
    tests.push((slot) => named[slot] === 1);
  }
  const part = foldText((name ?? "").trim());
  if (part !== "") {
    const found = index.search.find(part);
    tests.push((slot) => found[slot] === 1);
  }
  return tests;
}
