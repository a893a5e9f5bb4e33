import assert from "node:assert/strict";
import { test } from "node:test";
import { instant, type UnixSeconds } from "../../src/base/time.ts";
import { StreamPace } from "../../src/playback/stream-pace.ts";

const at = (seconds: number) => (1_700_000_000 + seconds) as UnixSeconds;

test("StreamPace.waitMs: returns 0 for ten seconds of data, then one second per second", () => {
  const pace = new StreamPace();
  for (let second = 0; second <= 10; second++) assert.equal(pace.waitMs(at(second), instant(0)), 0);
  assert.equal(pace.waitMs(at(11), instant(0)), 1000);
  assert.ok(pace.waitMs(at(11), instant(500)) > 490);
  assert.equal(pace.waitMs(at(11), instant(1000)), 0);
});

test("StreamPace.waitMs: a slow player gets no larger burst later", () => {
  const pace = new StreamPace();
  pace.waitMs(at(0), instant(0));
  assert.equal(pace.waitMs(at(1), instant(600_000)), 0);
  assert.equal(pace.waitMs(at(11), instant(600_000)), 0);
  assert.ok(pace.waitMs(at(12), instant(600_000)) > 0);
});

test("StreamPace.waitMs: does not wait for a gap in the stream", () => {
  const pace = new StreamPace();
  pace.waitMs(at(0), instant(0));
  assert.equal(pace.waitMs(at(3600), instant(0)), 0);
  assert.equal(pace.waitMs(at(3611), instant(0)), 1000);
});

test("StreamPace.waitMs: does not slow down a source whose clock is 0.1 % fast", () => {
  const pace = new StreamPace();
  for (let ms = 0; ms < 30 * 86_400_000; ms += 60_000)
    assert.equal(pace.waitMs(at((1.001 * ms) / 1000), instant(ms)), 0);
});

test("StreamPace.reset: allows a new burst", () => {
  const pace = new StreamPace();
  pace.waitMs(at(0), instant(0));
  assert.ok(pace.waitMs(at(11), instant(0)) > 0);
  pace.reset();
  assert.equal(pace.waitMs(at(11), instant(0)), 0);
});
