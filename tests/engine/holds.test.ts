import assert from "node:assert/strict";
import { test } from "node:test";
import type { Infohash } from "../../src/base/ids.ts";

import { Holds } from "../../src/engine/holds.ts";
import { FakeClock } from "./fake-clock.ts";
import { SILENT } from "./fake-house.ts";
import { FakeTransfers } from "./fake-transfers.ts";

const IDLE_MS = 60_000;
const content = { infohash: "ab".repeat(20) as Infohash, trackers: [], peers: [] };

function someHolds() {
  const clock = new FakeClock();
  const transfers = new FakeTransfers();
  return { clock, transfers, holds: new Holds({ clock, transfers, idleMs: IDLE_MS, log: SILENT }) };
}

test("Holds.openOwned: whose owner has given it back is over for its players, and open anew it is untouched by them", async () => {
  const { clock, transfers, holds } = someHolds();
  const player = holds.open(content);
  const owned = holds.openOwned(content);
  assert.equal(owned.transfer, player.transfer);
  owned.release();
  const [first] = transfers.opened;
  assert.ok(first!.stopped);
  // Another owner comes at once; the player of the first one notices later that it is over.
  const again = holds.openOwned(content);
  const second = transfers.opened[1]!;
  assert.equal(again.transfer, second);
  player.release();
  await clock.advance(2 * IDLE_MS);
  assert.equal(holds.figures().length, 1);
  const newcomer = holds.open(content);
  newcomer.release();
  await clock.advance(2 * IDLE_MS);
  assert.equal(second.stopped, false, "its owner holds it still");
  again.release();
  assert.ok(second.stopped);
  assert.equal(clock.waiting, 0);
});

test("Holds.open: what nobody holds any more goes on for a while, and not longer", async () => {
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
