import assert from "node:assert/strict";
import { test } from "node:test";
import { RateMeter } from "../../src/base/rate.ts";
import { instant } from "../../src/base/time.ts";

/** Adds 4 MB/s in blocks of 16 KiB from `fromMs` on, for `ms`. */
function feed(meter: RateMeter, fromMs: number, ms: number): void {
  const stepMs = 16_384 / 4_000;
  for (let at = 0; at <= ms; at += stepMs) meter.add(16_384, instant(fromMs + at));
}

test("RateMeter: measures a steady rate after one second", () => {
  for (const ms of [1_000, 2_000, 4_000, 30_000]) {
    const meter = new RateMeter();
    feed(meter, 5_000, ms);
    const rate = meter.bytesPerSecond(instant(5_000 + ms));
    assert.ok(Math.abs(rate - 4e6) < 0.05 * 4e6, `${rate} after ${ms} ms`);
  }
});

test("RateMeter: a single block at the start is not a high rate", () => {
  const meter = new RateMeter();
  meter.add(16_384, instant(0));
  assert.equal(meter.bytesPerSecond(instant(50)), 0);
  assert.ok(meter.bytesPerSecond(instant(100)) < 2 * 16_384 * 1.1);
});

test("RateMeter: resets after two windows without bytes, and measures a new rate at once", () => {
  const meter = new RateMeter();
  feed(meter, 0, 10_000);
  assert.ok(meter.bytesPerSecond(instant(14_000)) < 0.4 * 4e6);
  assert.equal(meter.bytesPerSecond(instant(18_001)), 0);
  feed(meter, 60_000, 1_000);
  const rate = meter.bytesPerSecond(instant(61_000));
  assert.ok(Math.abs(rate - 4e6) < 0.05 * 4e6, String(rate));
});

test("RateMeter: the result does not depend on how often it is read", () => {
  const [often, seldom] = [new RateMeter(), new RateMeter()];
  for (let at = 0; at < 3_000; at += 50) {
    for (const meter of [often, seldom]) meter.add(1_000, instant(at));
    often.bytesPerSecond(instant(at));
  }
  const [a, b] = [often, seldom].map((meter) => meter.bytesPerSecond(instant(3_000)));
  assert.ok(Math.abs(a! - b!) < 0.02 * b!, `${a} ${b}`);
});

test("RateMeter: the rate is 0 before any bytes", () => {
  assert.equal(new RateMeter().bytesPerSecond(instant(1_000)), 0);
});
