import assert from "node:assert/strict";
import { test } from "node:test";
import { HouseholdLimit } from "../../src/base/household-limit.ts";
import { instant } from "../../src/base/time.ts";

const NOW = instant(1_000);
const RATE = { perSecond: 2, burst: 20, maxHouseholds: 3 };

/** Returns how many of `count` operations at `now` are allowed. */
function taken(limit: HouseholdLimit, host: string, count: number, now = NOW): number {
  return Array.from({ length: count }, () => limit.take(host, now)).filter(Boolean).length;
}

test("HouseholdLimit.take: allows a burst, then the rate per second", () => {
  const limit = new HouseholdLimit(RATE);
  assert.equal(taken(limit, "60.0.0.1", 100), 20);
  assert.equal(taken(limit, "60.0.0.1", 100, instant(NOW + 5_000)), 10);
  assert.equal(taken(limit, "60.0.0.1", 100, instant(NOW + 3_600_000)), 20);
});

test("HouseholdLimit.take: an IPv6 /64 is one household, each IPv4 address is one", () => {
  const limit = new HouseholdLimit(RATE);
  assert.equal(taken(limit, "2001:470::1", 15), 15);
  assert.equal(taken(limit, "2001:470::ffff", 15), 5);
  assert.equal(taken(limit, "2001:470:0:1::1", 15), 15);
  assert.equal(taken(limit, "60.0.0.1", 15), 15);
});

test("HouseholdLimit.take: forgets the least recently active household", () => {
  const limit = new HouseholdLimit(RATE);
  for (const host of ["60.0.0.1", "60.0.0.2", "60.0.0.3"]) taken(limit, host, 20);
  assert.equal(limit.take("60.0.0.1", NOW), false);
  assert.ok(limit.take("60.0.0.4", NOW));
  assert.equal(limit.take("60.0.0.1", NOW), false);
  assert.ok(limit.take("60.0.0.2", NOW), "forgotten, it has its burst again");
});

test("HouseholdLimit: tracks at most ten thousand of a hundred thousand households", () => {
  const limit = new HouseholdLimit({ perSecond: 5, burst: 200, maxHouseholds: 10_000 });
  for (let n = 0; n < 100_000; n++) assert.ok(limit.take(`60.${n >> 16}.${(n >> 8) & 255}.${n & 255}`, NOW));
  assert.equal(limit.size, 10_000);
});
