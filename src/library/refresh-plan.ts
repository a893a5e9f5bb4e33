import type { Breathe } from "./breathe.ts";
import { MarkSet } from "./mark-set.ts";
import { type EntryMarks, matchEntries } from "./refresh-match.ts";
import type { SourceRow } from "./source-rows.ts";

/** What a new reading of a list makes of its rows. */
export interface RefreshPlan {
  /** The key of each entry, in the order of the list; 0 for one that is left out, since it is there already. */
  readonly keys: readonly number[];
  /** All rows from now on, in the order of their keys. */
  readonly rows: readonly SourceRow[];
  readonly nextKey: number;
}

/** So long an entry that has gone is remembered: what comes back is then the same (a locked item of it is still there). */
const REMEMBERED_DAYS = 30;
const MAX_REMEMBERED = 20_000;
/** A list has 200,000 entries at most, and there are the remembered ones. Keys go far beyond what a million of such lists need. */
const MAX_ROWS = 2 ** 18;

/**
 * Gives each entry of a list its key: that of the entry it was before, else that of one that went lately, else a new one.
 * The same link under the same title twice is one entry.
 */
export async function planRefresh(
  before: readonly SourceRow[],
  marks: readonly EntryMarks[],
  firstKey: number,
  today: number,
  breathe: Breathe,
): Promise<RefreshPlan> {
  const { different, indexes } = await withoutRepeats(marks, breathe);
  const known = before.filter(({ goneSince }) => goneSince === 0);
  const gone = before.filter(({ goneSince }) => goneSince !== 0);
  const keys = new Array<number>(marks.length).fill(0);
  const rows: SourceRow[] = [];
  const used = new Set<number>();
  const give = (at: number, key: number) => {
    keys[indexes[at]!] = key;
    used.add(key);
    const { link, name, guide } = different[at]!;
    rows.push({ key, link, name, guide, goneSince: 0 });
  };

  const found = await matchEntries(known, different, breathe);
  const left: number[] = [];
  for (const [at, match] of found.entries()) {
    if (at % 1000 === 0) await breathe();
    if (match >= 0) give(at, known[match]!.key);
    else left.push(at);
  }
  const leftMarks = left.map((at) => different[at]!);
  const back = await matchEntries(gone, leftMarks, breathe);
  let nextKey = Math.max(firstKey, 1 + before.reduce((most, { key }) => Math.max(most, key), 0));
  for (const [i, match] of back.entries()) {
    if (i % 1000 === 0) await breathe();
    give(left[i]!, match >= 0 ? gone[match]!.key : nextKey++);
  }

  await breathe();
  const remembered = before
    .filter(({ key }) => !used.has(key))
    .map((row) => (row.goneSince === 0 ? { ...row, goneSince: today } : row))
    .filter(({ goneSince }) => Math.abs(today - goneSince) <= REMEMBERED_DAYS)
    .sort((a, b) => b.goneSince - a.goneSince)
    .slice(0, MAX_REMEMBERED);
  await breathe();
  for (const row of remembered) rows.push(row);
  return { keys, rows: await inOrder(rows, breathe), nextKey };
}

/** The rows in the order of their keys, none of which is there twice. A comparing sort of so many would hold up the loop. */
async function inOrder(rows: readonly SourceRow[], breathe: Breathe): Promise<SourceRow[]> {
  await breathe();
  const order = new Float64Array(rows.length);
  for (const [at, { key }] of rows.entries()) order[at] = key * MAX_ROWS + at;
  order.sort();
  await breathe();
  return Array.from(order, (place) => rows[place % MAX_ROWS]!);
}

/** The first entry of each link and title, and where in the list it is. */
async function withoutRepeats(
  marks: readonly EntryMarks[],
  breathe: Breathe,
): Promise<{ readonly different: EntryMarks[]; readonly indexes: number[] }> {
  const seen = new MarkSet();
  const different: EntryMarks[] = [];
  const indexes: number[] = [];
  for (const [index, entry] of marks.entries()) {
    if (index % 1000 === 0) await breathe();
    if (!seen.add(entry.link + entry.name)) continue;
    different.push(entry);
    indexes.push(index);
  }
  return { different, indexes };
}
