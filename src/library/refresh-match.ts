import type { Breathe } from "./breathe.ts";
import { MarkTable } from "./mark-table.ts";

/**
 * What an entry of a list can be recognised by: numbers below 2^53 made of texts (`textMark`). They are kept with the
 * key that the entry's item has for good (docs/design/library.md).
 */
export interface EntryMarks {
  /** Of what it plays. */
  readonly link: number;
  /** Of its title. */
  readonly name: number;
  /** Of its programme guide's channel; 0 where it names none. */
  readonly guide: number;
}

/** Among the entries that are left, those with one mark are paired … */
interface Pass {
  mark(entry: EntryMarks): number;
  /** … if there is one on each side, or the first with the first, the second with the second, and so on. */
  readonly isUnique: boolean;
}

/** A mark of 0 pairs nothing. Two random sums of marks are as unlikely to be equal as two marks. */
const PASSES: readonly Pass[] = [
  { mark: ({ link, name }) => link + name, isUnique: false },
  { mark: ({ name }) => name, isUnique: true },
  { mark: ({ link }) => link, isUnique: false },
  { mark: ({ name }) => name, isUnique: false },
  { mark: ({ guide }) => guide, isUnique: true },
];

/**
 * Finds for each entry that a list has now the one that it was before: the result has, for each of `listed`, its index in
 * `known`, or -1 where it is new. Same link and title first; then the only one of a title (its link changed, as tokens
 * do); then the same link (it was renamed); then further ones of a title; then the only one of a guide's channel.
 */
export async function matchEntries(
  known: readonly EntryMarks[],
  listed: readonly EntryMarks[],
  breathe: Breathe,
): Promise<Int32Array> {
  const found = new Int32Array(listed.length).fill(-1);
  let knownLeft = Array.from(known.keys());
  let listedLeft = Array.from(listed.keys());
  const taken = new Uint8Array(known.length);
  for (const pass of PASSES) {
    if (knownLeft.length === 0 || listedLeft.length === 0) break;
    const before = await tableOf(known, knownLeft, pass, breathe);
    const now = pass.isUnique ? await tableOf(listed, listedLeft, pass, breathe) : undefined;
    let turns = 0;
    for (const index of listedLeft) {
      if (turns++ % 1000 === 0) await breathe();
      const mark = pass.mark(listed[index]!);
      if (mark === 0) continue;
      const was =
        now === undefined ? before.takeFirst(mark) : now.only(mark) === index ? before.only(mark) : -1;
      if (was === -1) continue;
      found[index] = was;
      taken[was] = 1;
    }
    await breathe();
    knownLeft = knownLeft.filter((index) => taken[index] === 0);
    listedLeft = listedLeft.filter((index) => found[index] === -1);
  }
  return found;
}

/** The entries by their marks. */
async function tableOf(
  entries: readonly EntryMarks[],
  left: readonly number[],
  { mark }: Pass,
  breathe: Breathe,
): Promise<MarkTable> {
  const table = new MarkTable(left.length, entries.length);
  let turns = 0;
  for (const index of left) {
    if (turns++ % 1000 === 0) await breathe();
    const value = mark(entries[index]!);
    if (value !== 0) table.add(value, index);
  }
  return table;
}

/**
 * A number below 2^53 that stands for a text; never 0. Two texts of one list share one once in ten million lists of
 * 100,000; who makes them do it on purpose confuses only the items of a list that is theirs.
 */
export function textMark(text: string): number {
  let a = 0x9e3779b9;
  let b = 0x85ebca6b;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    a = Math.imul(a ^ unit, 0x9e3779b1);
    b = Math.imul(b ^ unit, 0x5f356495);
    a ^= a >>> 15;
    b ^= b >>> 13;
  }
  a = Math.imul(a ^ (b >>> 16), 0x85ebca6b);
  b = Math.imul(b ^ (a >>> 13), 0xc2b2ae35);
  return (a >>> 0) * 0x200000 + (b >>> 11) || 1;
}
