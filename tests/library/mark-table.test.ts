import assert from "node:assert/strict";
import { test } from "node:test";
import { MarkSet } from "../../src/library/mark-set.ts";
import { MarkTable } from "../../src/library/mark-table.ts";
import { textMark } from "../../src/library/refresh-match.ts";

test("MarkTable: entries of one mark are taken in their order, those of others are not", () => {
  const table = new MarkTable(4, 10);
  for (const [mark, entry] of [[7, 3], [9, 4], [7, 5], [2 ** 53, 9]] as const) table.add(mark, entry); // biome-ignore format: a table
  assert.deepEqual([table.only(7), table.only(9), table.only(2 ** 53), table.only(8)], [-1, 4, 9, -1]);
  assert.deepEqual(
    [table.takeFirst(7), table.takeFirst(7), table.takeFirst(7), table.takeFirst(8)],
    [3, 5, -1, -1],
  );
});

test("MarkTable: agrees with a map over as many marks as it is made for", () => {
  const count = 5000;
  const table = new MarkTable(count, count);
  const map = new Map<number, number[]>();
  for (let entry = 0; entry < count; entry++) {
    const mark = textMark(`entry ${entry % 3700}`);
    table.add(mark, entry);
    map.set(mark, [...(map.get(mark) ?? []), entry]);
  }
  for (const [mark, entries] of map) {
    assert.equal(table.only(mark), entries.length === 1 ? entries[0] : -1);
    for (const entry of [...entries, -1]) assert.equal(table.takeFirst(mark), entry);
  }
});

test("MarkSet: tells once of each mark that it is new, however many there are", () => {
  const set = new MarkSet();
  const marks = Array.from({ length: 10_000 }, (_, i) => textMark(String(i)) + textMark(`b${i}`));
  for (const mark of marks) assert.equal(set.add(mark), true);
  for (const mark of marks) assert.equal(set.add(mark), false);
});
