import assert from "node:assert/strict";
import { test } from "node:test";
import { SessionLease } from "../../src/playback/session-lease.ts";
import { FakeClock } from "../engine/fake-clock.ts";

test("SessionLease: a session is played while its stream is open, and not after the player has closed it", async () => {
  const lease = new SessionLease(new FakeClock(), 60_000, () => {});
  await lease.during(async () => assert.ok(lease.isPlayed));
  assert.ok(lease.isPlayed, "the player has not opened the stream yet");
  const close = lease.openStream();
  assert.ok(lease.isPlayed);
  close();
  assert.ok(!lease.isPlayed);
  const closeAgain = lease.openStream();
  assert.ok(lease.isPlayed);
  closeAgain();
  lease.end();
});
