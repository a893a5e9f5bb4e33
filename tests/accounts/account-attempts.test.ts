import assert from "node:assert/strict";
import { test } from "node:test";
import { AttemptLimit } from "../../src/accounts/account-attempts.ts";
import { instant } from "../../src/base/time.ts";

test("AttemptLimit: after five failures attempts are blocked for a minute; blocked attempts do not prolong it", () => {
  const limit = new AttemptLimit();
  const results = [0, 10, 20, 30, 40, 50, 30_000, 60_039, 60_040].map((ms) =>
    limit.begin(["a"], instant(ms)),
  );
  assert.deepEqual(results, [true, true, true, true, true, false, false, false, true]);
});

test("AttemptLimit: one blocked key blocks the attempt, which does not count for the others", () => {
  const limit = new AttemptLimit();
  for (let i = 0; i < 5; i++) limit.begin(["a", `b${i}`], instant(i));
  for (let i = 0; i < 9; i++) assert.equal(limit.begin(["a", "c"], instant(10)), false);
  assert.equal(limit.begin(["c"], instant(11)), true);
});

test("AttemptLimit: remembers at most 10,000 keys", () => {
  const limit = new AttemptLimit();
  for (let i = 0; i < 5; i++) limit.begin(["first"], instant(0));
  for (let i = 0; i < 9_999; i++) limit.begin([`k${i}`], instant(1));
  assert.equal(limit.begin(["first"], instant(2)), false);
  limit.begin(["one more"], instant(2));
  assert.equal(limit.begin(["first"], instant(3)), true);
});
