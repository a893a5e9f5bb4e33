import { fromHex, readU32 } from "../base/bytes.ts";
import type { ItemQuery } from "./contract.ts";
import { FLAGS } from "./item-columns.ts";
import type { ItemIndex } from "./item-index.ts";
import { foldText } from "./item-names.ts";

type Test = (slot: number) => boolean;

/** The ids of all that fit, in the order that is asked for. Looks at the index only. */
export function findItems(index: ItemIndex, query: ItemQuery): number[] {
  const tests = testsOf(index, query);
  if (tests === undefined) return [];
  const { ids, count } = index.columns;
  const found: number[] = [];
  const take = (slot: number): void => {
    for (const test of tests) if (!test(slot)) return;
    found.push(ids[slot]!);
  };
  if (query.sort === "added") for (let slot = 0; slot < count; slot++) take(slot);
  else for (const slot of index.byTitle) take(slot);
  return found;
}

/** The cheapest first; undefined where nothing can fit, because nobody has such an owner or category. */
function testsOf(index: ItemIndex, query: ItemQuery): Test[] | undefined {
  const { columns } = index;
  const { owner, ids, name, category, subcategory, hash, isFavorite, isEnabled, externalPlaylistId } = query;
  const mask =
    FLAGS.gone |
    FLAGS.trash |
    (isFavorite === undefined ? 0 : FLAGS.favorite) |
    (isEnabled === undefined ? 0 : FLAGS.enabled);
  const wanted =
    (query.state === "trash" ? FLAGS.trash : 0) |
    (isFavorite === true ? FLAGS.favorite : 0) |
    (isEnabled === true ? FLAGS.enabled : 0);
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
