import assert from "node:assert/strict";
import { test } from "node:test";
import { FingerprintSet } from "../../src/library/fingerprint-set.ts";
import { FingerprintTable } from "../../src/library/fingerprint-table.ts";
import { fingerprintOf } from "../../src/library/refresh-match.ts";

test("FingerprintTable: entries with the same fingerprint are taken in order", () => {
  const table = new FingerprintTable(4, 10);
  for (const [fingerprint, entry] of [[7, 3], [9, 4], [7, 5], [2 ** 53, 9]] as const) table.add(fingerprint, entry); // biome-ignore format: a table
  assert.deepEqual([table.only(7), table.only(9), table.only(2 ** 53), table.only(8)], [-1, 4, 9, -1]);
  assert.deepEqual(
    [table.takeFirst(7), table.takeFirst(7), table.takeFirst(7), table.takeFirst(8)],
    [3, 5, -1, -1],
  );
});

test("FingerprintTable: agrees with a map at full capacity", () => {
  const count = 5000;
  const table = new FingerprintTable(count, count);
  const map = new Map<number, number[]>();
  for (let entry = 0; entry < count; entry++) {
    const fingerprint = fingerprintOf(`entry ${entry % 3700}`);
    table.add(fingerprint, entry);
    map.set(fingerprint, [...(map.get(fingerprint) ?? []), entry]);
  }
  for (const [fingerprint, entries] of map) {
    assert.equal(table.only(fingerprint), entries.length === 1 ? entries[0] : -1);
    for (const entry of [...entries, -1]) assert.equal(table.takeFirst(fingerprint), entry);
  }
});

test("FingerprintSet.add: true once for each fingerprint", () => {
  const set = new FingerprintSet();
  const fingerprints = Array.from(
    { length: 10_000 },
    (_, i) => fingerprintOf(String(i)) + fingerprintOf(`b${i}`),
  );
  for (const fingerprint of fingerprints) assert.equal(set.add(fingerprint), true);
  for (const fingerprint of fingerprints) assert.equal(set.add(fingerprint), false);
});
