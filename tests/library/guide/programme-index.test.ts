import assert from "node:assert/strict";
import { test } from "node:test";
import { ProgrammeIndex } from "../../../src/library/guide/programme-index.ts";
import { seededRandom } from "../../seeded-random.ts";

test("ProgrammeIndex: orders programmes by channel and start, however a guide lists them", async () => {
  const random = seededRandom(5);
  const index = new ProgrammeIndex();
  const added: { channel: number; start: number; offset: number }[] = [];
  // More than two blocks; channel 3 has none, and some start at the same time.
  for (let offset = 0; offset < 70_000; offset++) {
    const channel = [0, 1, 2, 4, 500][Math.floor(5 * random())]!;
    const entry = { channel, start: Math.floor(10_000 * random()), offset };
    added.push(entry);
    index.push(entry.channel, entry.start, entry.offset);
  }
  assert.equal(index.length, added.length);
  await index.sort();
  for (const channel of [0, 1, 2, 3, 4, 499, 500]) {
    const ours = added.filter((entry) => entry.channel === channel);
    ours.sort((a, b) => a.start - b.start || a.offset - b.offset);
    const { from, to } = index.range(channel);
    const found = Array.from({ length: to - from }, (_, i) => ({
      ...{ channel, start: index.startOf(from + i), offset: index.offsetOf(from + i) },
    }));
    assert.deepEqual(found, ours);
    for (const time of [-1, 0, 5_000, 9_999])
      assert.equal(index.startAfter(channel, time), ours.find(({ start }) => start > time)?.start);
  }
});
