import assert from "node:assert/strict";
import { test } from "node:test";
import { WakeTimer } from "../../src/async/wake-timer.ts";
import { after } from "../../src/base/time.ts";
import { FakeClock } from "../engine/fake-clock.ts";

test("WakeTimer: rings once at the earliest requested time, with a single timer", async () => {
  const clock = new FakeClock();
  const rung: number[] = [];
  const began = clock.now();
  const timer = new WakeTimer(clock, () => void rung.push(clock.now() - began));
  timer.want(undefined);
  assert.equal(clock.waiting, 0);
  for (const ms of [500, 900, 300, 400]) timer.want(after(began, ms));
  assert.equal(clock.waiting, 1);
  await clock.advance(2_000);
  assert.deepEqual(rung, [300]);
  timer.want(after(clock.now(), 100));
  await clock.advance(100);
  assert.deepEqual(rung, [300, 2_100]);
});

test("WakeTimer: never rings after stop, whatever is requested", async () => {
  const clock = new FakeClock();
  const timer = new WakeTimer(clock, () => assert.fail("stopped"));
  timer.want(after(clock.now(), 100));
  timer.stop();
  timer.want(after(clock.now(), 50));
  assert.equal(clock.waiting, 0);
  await clock.advance(1_000);
});
