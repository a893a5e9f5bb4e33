import assert from "node:assert/strict";
import { test } from "node:test";
import { randomBelow } from "../../src/base/random.ts";
import { type Budget, bothBudgets, RateLimit, URGENCY, type Urgency } from "../../src/base/rate-limit.ts";
import { instant } from "../../src/base/time.ts";
import { seededRandom } from "../seeded-random.ts";

/** A simulated user of a limit that takes blocks when its budget or its polling interval allows. */
interface User {
  readonly budget: Budget;
  readonly blockBytes: number;
  /** Polling interval; undefined to retry when the budget allows. */
  readonly everyMs: number | undefined;
  /** The user is active in `[fromMs, untilMs)`. */
  readonly fromMs: number;
  readonly untilMs: number;
  /** Maximum demand in bytes per second. */
  readonly demandBytesPerSecond: number;
  taken: number;
  nextAt: number;
}

function user(limit: RateLimit, urgency: Urgency, changes: Partial<User> = {}): User {
  return {
    budget: limit.budget(() => urgency),
    blockBytes: 16_384,
    everyMs: undefined,
    fromMs: 0,
    untilMs: Number.POSITIVE_INFINITY,
    demandBytesPerSecond: Number.POSITIVE_INFINITY,
    taken: 0,
    nextAt: changes.fromMs ?? 0,
    ...changes,
  };
}

/** Runs the users in simulated time. */
function run(users: readonly User[], fromMs: number, toMs: number): void {
  for (;;) {
    const next = users.reduce((a, b) => (b.nextAt < a.nextAt ? b : a));
    if (next.nextAt >= toMs) return;
    const now = instant(Math.max(next.nextAt, fromMs));
    const demand = (next.demandBytesPerSecond * (now - next.fromMs)) / 1000;
    let isRefused = false;
    while (now < next.untilMs && !isRefused && (next.taken < demand || demand === Number.POSITIVE_INFINITY)) {
      isRefused = !next.budget.take(next.blockBytes, now);
      if (!isRefused) next.taken += next.blockBytes;
    }
    if (now >= next.untilMs) next.nextAt = Number.POSITIVE_INFINITY;
    else if (next.everyMs !== undefined) next.nextAt = now + next.everyMs;
    else next.nextAt = now + Math.max(1, isRefused ? next.budget.waitMs(now) : 10);
  }
}

const sum = (users: readonly User[]) => users.reduce((all, { taken }) => all + taken, 0);

test("RateLimit holds within 5 % from 50 kB/s to 20 MB/s, for one user and for ten with different polling intervals", () => {
  for (const rate of [50_000, 300_000, 2_000_000, 20_000_000]) {
    for (const count of [1, 2, 10]) {
      const random = seededRandom(rate + count);
      const limit = new RateLimit(rate);
      const users = Array.from({ length: count }, (_, i) =>
        user(limit, URGENCY.files, {
          everyMs: i % 2 === 0 ? 100 : undefined,
          nextAt: randomBelow(random, 100),
        }),
      );
      run(users, 0, 10_000);
      const before = sum(users);
      run(users, 10_000, 40_000);
      const got = (sum(users) - before) / 30;
      assert.ok(Math.abs(got - rate) <= 0.05 * rate, `${count} users: ${Math.round(got)} of ${rate}`);
      assert.ok(before <= 1.05 * 10 * rate, `${before} bytes in the first ten seconds`);
    }
  }
});

test("RateLimit: budgets of equal urgency get equal shares at any polling interval, also one that starts late", () => {
  const limit = new RateLimit(1_000_000);
  const users = [
    user(limit, URGENCY.files, { everyMs: 100 }),
    user(limit, URGENCY.files),
    user(limit, URGENCY.files, { everyMs: 70, fromMs: 20_000 }),
  ];
  run(users, 0, 20_000);
  const [a, b] = users.map(({ taken }) => taken) as [number, number];
  assert.ok(Math.abs(a - b) < 250_000, `${a} and ${b}`);
  run(users, 20_000, 50_000);
  const late = users.map(({ taken }, i) => taken - [a, b, 0][i]!);
  for (const taken of late) assert.ok(Math.abs(taken - 10_000_000) < 700_000, late.join(" "));
});

test("RateLimit: live has priority; files get the rest", () => {
  const limit = new RateLimit(1_000_000);
  // Live polls rarely, files whenever possible: without priority live would get nothing.
  const live = user(limit, URGENCY.live, { blockBytes: 4_000, demandBytesPerSecond: 700_000, everyMs: 50 });
  const files = user(limit, URGENCY.files);
  run([live, files], 0, 30_000);
  assert.ok(live.taken > 0.97 * 30 * 700_000, `live ${live.taken}`);
  assert.ok(Math.abs(live.taken + files.taken - 30_000_000) < 0.05 * 30_000_000, `files ${files.taken}`);
});

test("RateLimit: an idle budget, or one that only calls waitMs, does not delay others", () => {
  const limit = new RateLimit(1_000_000);
  const going = user(limit, URGENCY.live, { untilMs: 5_000 });
  const files = user(limit, URGENCY.files);
  const idle = limit.budget(() => URGENCY.live);
  run([going, files], 0, 5_000);
  const before = files.taken;
  for (let at = 5_000; at < 15_000; at += 10) {
    idle.waitMs(instant(at));
    run([files], at, at + 10);
  }
  assert.ok(files.taken - before > 0.95 * 10_000_000, `${files.taken - before}`);
});

test("RateLimit: a budget that becomes idle gets only what others leave, and its share when it is used again", () => {
  const limit = new RateLimit(1_000_000);
  let urgency: Urgency = URGENCY.live;
  const changing = { ...user(limit, urgency), budget: limit.budget(() => urgency) };
  const other = user(limit, URGENCY.files);
  const shareOf = (fromMs: number) => {
    const before = changing.taken;
    run([changing, other], fromMs, fromMs + 5_000);
    return (changing.taken - before) / 5_000_000;
  };
  const live = shareOf(0);
  urgency = URGENCY.idle;
  const idle = shareOf(5_000);
  urgency = URGENCY.files;
  const again = shareOf(10_000);
  assert.ok(live > 0.9 && idle < 0.1 && again > 0.3, `${live} ${idle} ${again}`);
});

test("RateLimit.spend: spent bytes count against all budgets, and returned bytes become available", () => {
  const limit = new RateLimit(1_000_000);
  const [a, b] = [limit.budget(() => URGENCY.live), limit.budget(() => URGENCY.files)];
  a.spend(2_000_000, instant(0));
  assert.equal(b.take(1, instant(1_999)), false);
  assert.equal(b.waitMs(instant(1_999)), 2);
  assert.equal(b.take(1_000_000, instant(2_300)), true);
  assert.equal(b.take(1, instant(2_300)), false);
  b.spend(-1_000_000, instant(2_300));
  assert.equal(b.take(1, instant(2_300)), true);
});

test("RateLimit.change: a new limit applies at once, up and down, and to no limit and back", () => {
  const limit = new RateLimit(0);
  const one = user(limit, URGENCY.files);
  assert.equal(one.budget.take(1e9, instant(0)), true);
  for (const [i, rate] of [500_000, 2_000_000, 100_000].entries()) {
    const from = 30_000 * i;
    limit.change(rate, instant(from));
    const before = one.taken;
    run([one], from, from + 30_000);
    const got = (one.taken - before) / 30;
    assert.ok(Math.abs(got - rate) <= 0.05 * rate, `${got} of ${rate}`);
  }
  limit.change(0, instant(100_000));
  assert.equal(one.budget.take(1e9, instant(100_000)), true);
  assert.equal(one.budget.waitMs(instant(100_000)), 0);
});

test("Budget.fairShareBytesPerSecond: divides the limit among active budgets; 0 without a limit", () => {
  const limit = new RateLimit(900_000);
  const [a, b, c] = [1, 2, 3].map(() => limit.budget(() => URGENCY.files));
  assert.equal(a!.fairShareBytesPerSecond(instant(0)), 900_000);
  for (const each of [a, b, c]) each!.take(1, instant(1_000));
  assert.equal(a!.fairShareBytesPerSecond(instant(2_000)), 300_000);
  assert.equal(limit.budget(() => URGENCY.files).fairShareBytesPerSecond(instant(2_000)), 225_000);
  a!.take(1, instant(60_000));
  assert.equal(a!.fairShareBytesPerSecond(instant(60_000)), 900_000);
  assert.equal(new RateLimit(0).budget(() => URGENCY.files).fairShareBytesPerSecond(instant(0)), 0);
});

/** Returns the limiting rate of each user at `toMs`, after running since `fromMs`. */
function heldTo(users: readonly User[], fromMs: number, toMs: number): number[] {
  run(users, fromMs, toMs);
  return users.map(({ budget }) => budget.limitedToBytesPerSecond(instant(toMs)));
}

test("Budget.limitedToBytesPerSecond: the current limit if it is used up; 0 if it is far away", () => {
  const limit = new RateLimit(0);
  const one = user(limit, URGENCY.files, { demandBytesPerSecond: 1_000_000 });
  assert.deepEqual(heldTo([one], 0, 10_000), [0]);
  for (const [i, [rate, held]] of [
    [100_000, 100_000],
    [20_000_000, 0],
    [900_000, 900_000],
  ].entries()) {
    const from = 20_000 * (i + 1);
    // Do not catch up on demand of the past.
    one.taken = one.demandBytesPerSecond * (from / 1000);
    limit.change(rate!, instant(from));
    assert.deepEqual(heldTo([one], from, from + 15_000), [held], `${rate} bytes a second`);
  }
});

test("Budget.limitedToBytesPerSecond: only budgets that have their share are limited, not those with slow peers", () => {
  const limit = new RateLimit(1_000_000);
  const slow = user(limit, URGENCY.files, { demandBytesPerSecond: 100_000 });
  const [a, b] = [user(limit, URGENCY.files), user(limit, URGENCY.files, { everyMs: 100 })];
  assert.deepEqual(heldTo([slow, a, b], 0, 20_000), [0, 1_000_000, 1_000_000]);
  const modest = user(limit, URGENCY.files, { fromMs: 20_000, demandBytesPerSecond: 350_000 });
  assert.deepEqual(heldTo([modest, a], 20_000, 28_000), [0, 1_000_000], "the others have gone");
  const alone = new RateLimit(1_000_000);
  const few = [100_000, 600_000].map((demandBytesPerSecond) =>
    user(alone, URGENCY.files, { demandBytesPerSecond }),
  );
  assert.deepEqual(heldTo(few, 0, 20_000), [0, 0], "700 of 1,000 kB/s");
});

test("Budget.limitedToBytesPerSecond: less urgent budgets share what more urgent ones leave", () => {
  const limit = new RateLimit(1_000_000);
  const live = user(limit, URGENCY.live, { demandBytesPerSecond: 700_000, everyMs: 20, blockBytes: 4_000 });
  const files = user(limit, URGENCY.files);
  assert.deepEqual(heldTo([live, files], 0, 20_000), [0, 1_000_000]);
  const greedy = user(limit, URGENCY.live, { fromMs: 20_000 });
  assert.deepEqual(
    heldTo([greedy, files], 20_000, 40_000),
    [1_000_000, 1_000_000],
    "files have next to nothing",
  );
  run([greedy], 40_000, 42_000);
  assert.equal(
    files.budget.limitedToBytesPerSecond(instant(42_000)),
    0,
    "who asks for nothing is not held back",
  );
});

test("bothBudgets: the smaller limit holds, the rest is left to others, and without an own limit only the shared one counts", () => {
  const shared = new RateLimit(400_000);
  const own = new RateLimit(100_000).budget(() => URGENCY.files);
  let isLimited = true;
  const limited = user(shared, URGENCY.files);
  const both = bothBudgets(
    () => (isLimited ? own : undefined),
    shared.budget(() => URGENCY.files),
  );
  const users = [{ ...limited, budget: both }, user(shared, URGENCY.files)];
  run(users, 0, 30_000);
  near(users[0]!.taken, 30 * 100_000);
  near(users[1]!.taken, 30 * 300_000);
  isLimited = false;
  const before = users.map(({ taken }) => taken);
  run(users, 30_000, 60_000);
  assert.ok(users[0]!.taken - before[0]! > 29 * 200_000);
});

function near(bytes: number, expected: number): void {
  assert.ok(Math.abs(bytes - expected) < expected / 20, `${bytes} bytes instead of ${expected}`);
}
