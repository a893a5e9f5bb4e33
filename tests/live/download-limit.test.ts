import assert from "node:assert/strict";
import { test } from "node:test";
import { RateLimit, URGENCY } from "../../src/base/rate-limit.ts";
import { instant } from "../../src/base/time.ts";
import { DownloadLimit, type PausableSender } from "../../src/live/download-limit.ts";

/** Sends as fast as it is read: 16 KiB per check of its socket. */
class EagerSender implements PausableSender {
  readonly isExempt: boolean;
  isPaused = false;
  sent = 0;

  constructor(isExempt = false) {
    this.isExempt = isExempt;
  }

  pause(): void {
    this.isPaused = true;
  }

  resume(): void {
    this.isPaused = false;
  }
}

/** Runs senders for 30 s; checks sockets every 5 ms and the limit ten times a second. */
function run(limit: DownloadLimit, senders: readonly EagerSender[], others?: (now: number) => void): void {
  for (let at = 0; at < 30_000; at += 5) {
    for (const sender of senders) {
      if (sender.isPaused) continue;
      sender.sent += 16_384;
      limit.received(sender, 16_384, instant(at));
    }
    if (at % 100 === 0) for (const sender of senders) limit.round(sender, instant(at));
    others?.(at);
  }
}

test("DownloadLimit: fast senders stay within 5 % of the limit", () => {
  for (const [rate, count] of [
    [200_000, 1],
    [1_000_000, 1],
    [1_000_000, 8],
    [5_000_000, 4],
  ] as const) {
    const senders = Array.from({ length: count }, () => new EagerSender());
    const budget = new RateLimit(rate).budget(() => URGENCY.live);
    run(new DownloadLimit(budget), senders);
    const got = senders.reduce((sum, { sent }) => sum + sent, 0) / 30;
    assert.ok(Math.abs(got - rate) <= 0.05 * rate, `${count} senders: ${Math.round(got)} of ${rate}`);
    assert.equal(budget.limitedToBytesPerSecond(instant(30_000)), rate);
  }
});

test("DownloadLimit: files get the remaining rate, and live is not paused for them", () => {
  const limit = new RateLimit(1_000_000);
  const files = limit.budget(() => URGENCY.files);
  const live = new EagerSender();
  const down = new DownloadLimit(limit.budget(() => URGENCY.live));
  let taken = 0;
  let pauses = 0;
  for (let at = 0; at < 30_000; at += 10) {
    // 600 kB/s of live data.
    if (live.isPaused) pauses++;
    else down.received(live, 6_000, instant(at));
    if (at % 100 === 0) {
      down.round(live, instant(at));
      while (files.take(16_384, instant(at))) taken += 16_384;
    }
  }
  assert.equal(pauses, 0);
  assert.equal(files.limitedToBytesPerSecond(instant(30_000)), 1_000_000);
  assert.ok(Math.abs(taken / 30 - 400_000) <= 0.05 * 1_000_000, `${taken / 30}`);
});

test("DownloadLimit: an exempt peer is never paused, and does not use the limit", () => {
  const limit = new RateLimit(100_000);
  const senders = [new EagerSender(true), new EagerSender()];
  run(new DownloadLimit(limit.budget(() => URGENCY.live)), senders);
  assert.equal(senders[0]!.sent, 6_000 * 16_384);
  assert.ok(Math.abs(senders[1]!.sent / 30 - 100_000) <= 6_000, `${senders[1]!.sent / 30}`);
});
