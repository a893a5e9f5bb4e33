import assert from "node:assert/strict";
import { test } from "node:test";
import { SILENT_LOG } from "../../src/base/log.ts";
import { followSchedule } from "../../src/net/limit-schedule.ts";
import { PeerLimits } from "../../src/net/peer-limits.ts";
import { FakeClock } from "../engine/fake-clock.ts";

/** Returns whether the scheduled limits apply at `minute`. */
function isScheduledAt(minute: number, times: { fromMinute: number; toMinute: number }): boolean {
  const limits = new PeerLimits({ uploadLimit: 1, downloadLimit: 1, limitLan: true });
  const scheduled = { ...times, uploadLimit: 2, downloadLimit: 2 };
  const dependencies = { clock: new FakeClock(), log: SILENT_LOG, minuteOf: () => minute };
  followSchedule(limits, { uploadLimit: 1, downloadLimit: 1, scheduled }, dependencies)();
  return limits.upload.bytesPerSecond === 2;
}

test("followSchedule: the period is half-open and may span midnight", () => {
  const day = { fromMinute: 8 * 60, toMinute: 18 * 60 };
  assert.deepEqual(
    [479, 480, 1079, 1080, 0].map((minute) => isScheduledAt(minute, day)),
    [false, true, true, false, false],
  );
  const night = { fromMinute: 22 * 60, toMinute: 6 * 60 + 30 };
  assert.deepEqual(
    [1319, 1320, 1439, 0, 389, 390, 720].map((minute) => isScheduledAt(minute, night)),
    [false, true, true, true, true, false, false],
  );
});

test("followSchedule: applies the scheduled limits within the period, the regular ones before and after", async () => {
  const clock = new FakeClock();
  let minute = 21 * 60 + 59;
  const limits = new PeerLimits({ uploadLimit: 500, downloadLimit: 0, limitLan: true });
  const scheduled = { fromMinute: 22 * 60, toMinute: 6 * 60, uploadLimit: 0, downloadLimit: 900 };
  const stop = followSchedule(
    limits,
    { uploadLimit: 500, downloadLimit: 0, scheduled },
    { clock, log: SILENT_LOG, minuteOf: () => minute },
  );
  const now = () => [limits.upload.bytesPerSecond, limits.download.bytesPerSecond];
  await clock.advance(30_000);
  assert.deepEqual(now(), [500, 0]);
  minute = 22 * 60;
  await clock.advance(20_000);
  assert.deepEqual(now(), [0, 900]);
  minute = 6 * 60;
  await clock.advance(20_000);
  assert.deepEqual(now(), [500, 0]);
  stop();
  assert.equal(clock.waiting, 0);
});

test("followSchedule: applies the present limits immediately; without a schedule, starts no timer", () => {
  const clock = new FakeClock();
  const limits = new PeerLimits({ uploadLimit: 1, downloadLimit: 2, limitLan: true });
  const scheduled = { fromMinute: 0, toMinute: 1439, uploadLimit: 3, downloadLimit: 4 };
  const plan = { uploadLimit: 1, downloadLimit: 2 };
  followSchedule(limits, { ...plan, scheduled: undefined }, { clock, log: SILENT_LOG });
  assert.deepEqual([limits.upload.bytesPerSecond, clock.waiting], [1, 0]);
  followSchedule(limits, { ...plan, scheduled }, { clock, log: SILENT_LOG, minuteOf: () => 5 });
  assert.deepEqual([limits.upload.bytesPerSecond, limits.download.bytesPerSecond], [3, 4]);
  // With the real local time, either pair may apply.
  followSchedule(limits, { ...plan, scheduled }, { clock, log: SILENT_LOG });
  assert.ok([1, 3].includes(limits.upload.bytesPerSecond));
});

test("PeerLimits.isExempt: true for private addresses only, if limitLan is off", () => {
  const hosts = ["192.168.1.2", "10.0.0.1", "fd00::1", "fe80::1", "127.0.0.1", "8.8.8.8", "2001:4860::1"];
  const results = (limitLan: boolean) => {
    const limits = new PeerLimits({ uploadLimit: 1, downloadLimit: 1, limitLan });
    return hosts.map((host) => limits.isExempt(host));
  };
  assert.deepEqual(
    results(true),
    hosts.map(() => false),
  );
  assert.deepEqual(results(false), [true, true, true, true, true, false, false]);
});
