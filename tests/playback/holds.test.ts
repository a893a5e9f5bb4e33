import assert from "node:assert/strict";
import { test } from "node:test";
import type { Infohash } from "../../src/base/ids.ts";
import { SILENT_LOG } from "../../src/base/log.ts";

import { Holds } from "../../src/playback/holds.ts";
import { FakeClock } from "../engine/fake-clock.ts";
import { FakeTransfers } from "../engine/fake-transfers.ts";

const IDLE_MS = 60_000;
const content = { infohash: "ab".repeat(20) as Infohash, trackers: [], peers: [] };

function someHolds(maxTransfers = 24) {
  const clock = new FakeClock();
  const transfers = new FakeTransfers();
  return {
    clock,
    transfers,
    holds: new Holds({
      clock,
      transfers,
      idleMs: IDLE_MS,
      maxTransfers,
      endUnused() {},
      log: SILENT_LOG,
    }),
  };
}

test("Holds.openOwned: releasing it stops the transfer for its players, who do not affect a newer one", async () => {
  const { clock, transfers, holds } = someHolds();
  const player = holds.open(content);
  const owned = holds.openOwned(content);
  assert.equal(owned.transfer, player.transfer);
  owned.release();
  const [first] = transfers.opened;
  assert.ok(first!.stopped);
  // Another owner opens it at once; the player of the first transfer releases its hold later.
  const again = holds.openOwned(content);
  const second = transfers.opened[1]!;
  assert.equal(again.transfer, second);
  player.release();
  await clock.advance(2 * IDLE_MS);
  assert.equal(holds.figures().length, 1);
  const newcomer = holds.open(content);
  newcomer.release();
  await clock.advance(2 * IDLE_MS);
  assert.equal(second.stopped, false, "its owner still holds it");
  again.release();
  assert.ok(second.stopped);
  assert.equal(clock.waiting, 0);
});

test("Holds.open: a transfer without holders stops after the idle time", async () => {
  const { clock, transfers, holds } = someHolds();
  holds.open(content).release();
  await clock.advance(IDLE_MS - 1);
  const again = holds.open(content);
  await clock.advance(2 * IDLE_MS);
  assert.deepEqual([transfers.opened.length, transfers.opened[0]!.stopped], [1, false]);
  again.release();
  again.release();
  await clock.advance(IDLE_MS);
  assert.ok(transfers.opened[0]!.stopped);
  assert.equal(clock.waiting, 0);
});

test("Holds.open: a transfer is idle 3 s after its last holder left, until the next one", async () => {
  const { clock, transfers, holds } = someHolds();
  const first = holds.open(content);
  const idle: boolean[] = [];
  transfers.opened[0]!.setIdle = (isIdle) => idle.push(isIdle);
  first.release();
  await clock.advance(2_999);
  const second = holds.open(content);
  await clock.advance(60_000);
  assert.deepEqual(idle, [false]);
  second.release();
  await clock.advance(3_000);
  assert.deepEqual(idle, [false, true]);
  const third = holds.open(content);
  assert.deepEqual(idle, [false, true, false]);
  third.release();
  await clock.advance(IDLE_MS);
  assert.ok(transfers.opened[0]!.stopped);
});

test("Hold.rest: a transfer is idle while all its holders rest", () => {
  const { transfers, holds } = someHolds();
  const [one, other] = [holds.open(content), holds.open(content)];
  const idle: boolean[] = [];
  transfers.opened[0]!.setIdle = (isIdle) => void idle.push(isIdle);
  one.rest?.(true);
  one.rest?.(true);
  assert.deepEqual(idle, []);
  other.release();
  assert.deepEqual(idle, [true], "the only other holder has left");
  one.rest?.(false);
  assert.deepEqual(idle, [true, false]);
  one.rest?.(true);
  const newcomer = holds.open(content);
  assert.deepEqual(idle, [true, false, true, false]);
  newcomer.rest?.(true);
  newcomer.rest?.(false);
  assert.deepEqual(idle.slice(4), [true, false]);
});

test("Holds.openOwned: files of this machine do not count for the limit of transfers", () => {
  const { holds } = someHolds();
  const infohashOf = (i: number) => i.toString(16).padStart(40, "0") as Infohash;
  for (let i = 0; i < 40; i++)
    holds.openOwned({ ...content, infohash: infohashOf(i), ownFile: `/recordings/${i}.ts` });
  for (let i = 40; i < 64; i++) holds.open({ ...content, infohash: infohashOf(i) });
  assert.throws(() => holds.open({ ...content, infohash: infohashOf(64) }), { code: "too_many" });
});

test("Holds.open: beyond max-transfers, the longest idle transfer is stopped; if all have players, the start is refused", () => {
  const { transfers, holds } = someHolds(2);
  const contentOf = (digits: string) => ({ ...content, infohash: digits.repeat(20) as Infohash });
  holds.open(contentOf("01")).release();
  holds.open(contentOf("02"));
  holds.open(contentOf("03"));
  assert.deepEqual(
    transfers.opened.map(({ stopped }) => stopped),
    [true, false, false],
  );
  assert.throws(() => holds.open(contentOf("04")), /transfer limit \(2; see --max-transfers\)/);
});
