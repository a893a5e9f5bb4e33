import type { YieldIfDue } from "../async/event-loop.ts";
import { FingerprintSet } from "./fingerprint-set.ts";
import { type EntryFingerprints, matchEntries } from "./refresh-match.ts";
import type { SourceRow } from "./source-rows.ts";

interface RefreshPlan {
  /** The key of each entry, in the order of the list; 0 for a repeated entry. */
  readonly keys: readonly number[];
  /** The new rows, in the order of their keys. */
  readonly rows: readonly SourceRow[];
  readonly nextKey: number;
}

/** Removed entries are remembered this long, so that they get the same key if they return (a locked item still exists). */
const REMEMBERED_DAYS = 30;
const MAX_REMEMBERED = 20_000;
/** More than the 200,000 entries of a list plus the remembered ones. */
const MAX_ROWS = 2 ** 18;

/**
 * Assigns a key to each entry of a list: the key of the matching previous entry, else of a matching removed entry, else a
 * new one. Entries with the same link and title count once. `today` is in days since 1970.
 */
export async function planRefresh(
  before: readonly SourceRow[],
  fingerprints: readonly EntryFingerprints[],
  firstKey: number,
  today: number,
  yieldIfDue: YieldIfDue,
): Promise<RefreshPlan> {
  const { different, indexes } = await withoutRepeats(fingerprints, yieldIfDue);
  const known = before.filter(({ goneSince }) => goneSince === 0);
  const gone = before.filter(({ goneSince }) => goneSince !== 0);
  const keys = new Array<number>(fingerprints.length).fill(0);
  const rows: SourceRow[] = [];
  const used = new Set<number>();
  const give = (at: number, key: number) => {
    keys[indexes[at]!] = key;
    used.add(key);
    const { link, name, guide } = different[at]!;
    rows.push({ key, link, name, guide, goneSince: 0 });
  };

  const found = await matchEntries(known, different, yieldIfDue);
  const left: number[] = [];
  for (const [at, match] of found.entries()) {
    if (at % 1000 === 0) await yieldIfDue();
    if (match >= 0) give(at, known[match]!.key);
    else left.push(at);
  }
  const leftFingerprints = left.map((at) => different[at]!);
  const back = await matchEntries(gone, leftFingerprints, yieldIfDue);
  let nextKey = Math.max(firstKey, 1 + before.reduce((most, { key }) => Math.max(most, key), 0));
  for (const [i, match] of back.entries()) {
    if (i % 1000 === 0) await yieldIfDue();
    give(left[i]!, match >= 0 ? gone[match]!.key : nextKey++);
  }

  await yieldIfDue();
  const remembered = before
    .filter(({ key }) => !used.has(key))
    .map((row) => (row.goneSince === 0 ? { ...row, goneSince: today } : row))
    .filter(({ goneSince }) => Math.abs(today - goneSince) <= REMEMBERED_DAYS)
    .sort((a, b) => b.goneSince - a.goneSince)
    .slice(0, MAX_REMEMBERED);
  await yieldIfDue();
  for (const row of remembered) rows.push(row);
  return { keys, rows: await inOrder(rows, yieldIfDue), nextKey };
}

/** Sorts rows by key with a typed array, because a sort with a comparator would block the event loop too long. */
async function inOrder(rows: readonly SourceRow[], yieldIfDue: YieldIfDue): Promise<SourceRow[]> {
  await yieldIfDue();
  const order = new Float64Array(rows.length);
  for (const [at, { key }] of rows.entries()) order[at] = key * MAX_ROWS + at;
  order.sort();
  await yieldIfDue();
  return Array.from(order, (place) => rows[place % MAX_ROWS]!);
}

/** Returns the first entry of each link and title, and its index in the list. */
async function withoutRepeats(
  fingerprints: readonly EntryFingerprints[],
  yieldIfDue: YieldIfDue,
): Promise<{ readonly different: EntryFingerprints[]; readonly indexes: number[] }> {
  const seen = new FingerprintSet();
  const different: EntryFingerprints[] = [];
  const indexes: number[] = [];
  for (const [index, entry] of fingerprints.entries()) {
    if (index % 1000 === 0) await yieldIfDue();
    if (!seen.add(entry.link + entry.name)) continue;
    different.push(entry);
    indexes.push(index);
  }
  return { different, indexes };
}
