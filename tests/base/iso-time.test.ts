import assert from "node:assert/strict";
import { test } from "node:test";
import { isoTime } from "../../src/base/iso-time.ts";

test("isoTime: agrees with Date for every day of 400 years", () => {
  for (let day = -1000; day < 146_097 + 1000; day++) {
    const unixMs = day * 86_400_000 + ((day * 7_654_321 + 12_345_678_901) % 86_400_000);
    assert.equal(isoTime(unixMs), new Date(unixMs).toISOString());
  }
});

test("isoTime: the edges of days, months and years", () => {
  for (const text of [
    "1970-01-01T00:00:00.000Z",
    "1999-12-31T23:59:59.999Z",
    "2000-02-29T12:00:00.001Z",
    "2100-02-28T23:59:59.999Z",
    "2100-03-01T00:00:00.000Z",
    "9999-12-31T23:59:59.999Z",
  ])
    assert.equal(isoTime(Date.parse(text)), text);
});

test("isoTime: truncates fractions of a millisecond", () => {
  assert.equal(isoTime(1_700_000_000_000.9), "2023-11-14T22:13:20.000Z");
});
