import assert from "node:assert/strict";
import { test } from "node:test";
import { AddressRangesBuilder } from "../../src/base/address-ranges.ts";
import { randomBelow } from "../../src/base/random.ts";
import { seededRandom } from "../seeded-random.ts";

test("AddressRanges.has: agrees with a linear search, for any order and overlap of ranges", () => {
  for (const words of [1, 4] as const) {
    for (let seed = 0; seed < 20; seed++) {
      const random = seededRandom(seed);
      const builder = new AddressRangesBuilder(words);
      const ranges: [number, number][] = [];
      // Vary the highest word of IPv6 as well, and cover carries.
      const address = (value: number) =>
        words === 1 ? [value] : [value >>> 4, 0xffffffff, value & 8 ? 0xffffffff : 0, value & 7];
      for (let i = 0; i < randomBelow(random, 60); i++) {
        const first = randomBelow(random, 1000);
        const last = first + randomBelow(random, 30);
        ranges.push([first, last]);
        assert.equal(builder.add(address(first), address(last)), true);
      }
      const built = builder.build();
      assert.ok(built.count <= ranges.length);
      for (let value = 0; value < 1040; value++) {
        const expected = ranges.some(([first, last]) => first <= value && value <= last);
        assert.equal(built.has(address(value)), expected, `seed ${seed}, ${words} words, ${value}`);
      }
    }
  }
});

test("AddressRangesBuilder: merges adjacent ranges, also at the ends of the address space, and rejects reversed ranges", () => {
  const builder = new AddressRangesBuilder(1);
  assert.equal(builder.add([5], [4]), false);
  for (const [first, last] of [
    [0xffffff00, 0xffffffff],
    [0, 9],
    [10, 20],
    [22, 22],
    [15, 17],
    [0xfffffff0, 0xffffffff],
  ] as const)
    builder.add([first], [last]);
  const built = builder.build();
  assert.equal(built.count, 3);
  assert.deepEqual(
    [0, 20, 21, 22, 23, 0xfffffeff, 0xffffff00, 0xffffffff].map((value) => built.has([value])),
    [true, true, false, true, false, false, true, true],
  );
  assert.equal(new AddressRangesBuilder(4).build().has([0, 0, 0, 0]), false);
  const six = new AddressRangesBuilder(4);
  six.add([1, 2, 0, 0], [1, 2, 0xffffffff, 0xffffffff]);
  six.add([1, 3, 0, 0], [1, 3, 0, 5]);
  assert.equal(six.build().count, 1, "one more than the last carries into the next word");
});
