import type { YieldIfDue } from "../async/event-loop.ts";
import { FingerprintTable } from "./fingerprint-table.ts";

/**
 * Fingerprints (`fingerprintOf`) that identify an entry of a list across refreshes. They are stored with the permanent
 * key of the entry's item (docs/design/library.md).
 */
export interface EntryFingerprints {
  /** Of its content. */
  readonly link: number;
  /** Of its title. */
  readonly name: number;
  /** Of its channel in the program guide; 0 if it names none. */
  readonly guide: number;
}

/** A matching pass: pairs the remaining entries with equal fingerprints. */
interface Pass {
  fingerprint(entry: EntryFingerprints): number;
  /** True: pairs only if each side has exactly one such entry. False: pairs them in order. */
  readonly isUnique: boolean;
}

/** A fingerprint of 0 never matches. Sums of fingerprints collide as rarely as fingerprints. */
const PASSES: readonly Pass[] = [
  { fingerprint: ({ link, name }) => link + name, isUnique: false },
  { fingerprint: ({ name }) => name, isUnique: true },
  { fingerprint: ({ link }) => link, isUnique: false },
  { fingerprint: ({ name }) => name, isUnique: false },
  { fingerprint: ({ guide }) => guide, isUnique: true },
];

/**
 * Matches the entries of a list with its previous ones. Returns for each of `listed` its index in `known`, or -1 if it is
 * new. Passes: same link and title; unique title (the link changed, for example a token); same link (renamed); further
 * entries with the same title; unique guide channel.
 */
export async function matchEntries(
  known: readonly EntryFingerprints[],
  listed: readonly EntryFingerprints[],
  yieldIfDue: YieldIfDue,
): Promise<Int32Array> {
  const found = new Int32Array(listed.length).fill(-1);
  let knownLeft = Array.from(known.keys());
  let listedLeft = Array.from(listed.keys());
  const taken = new Uint8Array(known.length);
  for (const pass of PASSES) {
    if (knownLeft.length === 0 || listedLeft.length === 0) break;
    const before = await tableOf(known, knownLeft, pass, yieldIfDue);
    const now = pass.isUnique ? await tableOf(listed, listedLeft, pass, yieldIfDue) : undefined;
    let turns = 0;
    for (const index of listedLeft) {
      if (turns++ % 1000 === 0) await yieldIfDue();
      const fingerprint = pass.fingerprint(listed[index]!);
      if (fingerprint === 0) continue;
      const was =
        now === undefined
          ? before.takeFirst(fingerprint)
          : now.only(fingerprint) === index
            ? before.only(fingerprint)
            : -1;
      if (was === -1) continue;
      found[index] = was;
      taken[was] = 1;
    }
    await yieldIfDue();
    knownLeft = knownLeft.filter((index) => taken[index] === 0);
    listedLeft = listedLeft.filter((index) => found[index] === -1);
  }
  return found;
}

/** Builds a table of the remaining entries by fingerprint. */
async function tableOf(
  entries: readonly EntryFingerprints[],
  left: readonly number[],
  { fingerprint }: Pass,
  yieldIfDue: YieldIfDue,
): Promise<FingerprintTable> {
  const table = new FingerprintTable(left.length, entries.length);
  let turns = 0;
  for (const index of left) {
    if (turns++ % 1000 === 0) await yieldIfDue();
    const value = fingerprint(entries[index]!);
    if (value !== 0) table.add(value, index);
  }
  return table;
}

/**
 * Computes a 53-bit hash of a text; never 0. In a list of 100,000 entries the probability of a collision is about 10^-7.
 * Deliberate collisions affect only the list of their author.
 */
export function fingerprintOf(text: string): number {
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
