import assert from "node:assert/strict";
import { test } from "node:test";
import { NO_LIMIT, RateLimit, URGENCY } from "../../src/base/rate-limit.ts";
import { type Instant, instant } from "../../src/base/time.ts";
import { type LiveSender, UploadLimit } from "../../src/live/upload-limit.ts";
import type { LivePriority } from "../../src/protocol/live/contract.ts";

/** A sender with this many messages of 1,000 bytes and one priority. */
class ScriptedSender implements LiveSender {
  readonly priority: LivePriority;
  waiting: number;
  sent = 0;
  isExempt = false;

  constructor(priority: LivePriority, waiting: number) {
    this.priority = priority;
    this.waiting = waiting;
  }

  top(): LivePriority | undefined {
    return this.waiting > 0 ? this.priority : undefined;
  }

  send(most: number, last: LivePriority): number {
    assert.ok(last >= this.priority);
    const count = Math.min(this.waiting, Math.max(1, Math.floor(most / 1_000)));
    this.waiting -= count;
    this.sent += 1_000 * count;
    return 1_000 * count;
  }
}

/** Shares for a time as the driver does: again at each returned time. */
function run(limit: UploadLimit, from: number, forMs: number): void {
  let at: Instant | undefined = instant(from);
  while (at !== undefined && at <= from + forMs) {
    const next: Instant | undefined = limit.share(at);
    assert.ok(next === undefined || next > at, "it asks to come again later");
    at = next;
  }
}

test("UploadLimit.share: no second exceeds the limit plus a burst and a message", () => {
  const limit = new UploadLimit(50_000, NO_LIMIT);
  const sender = new ScriptedSender(1, 1_000_000);
  limit.add(sender);
  run(limit, 0, 10_000);
  assert.ok(sender.sent <= 10 * 50_000 + 2 * 16_384, `${sender.sent} bytes`);
  assert.ok(sender.sent >= 10 * 50_000 - 16_384, `${sender.sent} bytes`);
});

test("UploadLimit.share: live precedes repair, in any order of arrival", () => {
  const limit = new UploadLimit(50_000, NO_LIMIT);
  const repair = new ScriptedSender(2, 1_000_000);
  const live = new ScriptedSender(1, 100);
  limit.add(repair);
  limit.add(live);
  run(limit, 0, 1_500);
  assert.equal(repair.sent, 0);
  run(limit, 1_500, 8_500);
  assert.equal(live.waiting, 0);
  assert.ok(repair.sent > 300_000, `${repair.sent} bytes of repair`);
});

test("UploadLimit.share: connections with the same priority get the same rate", () => {
  const limit = new UploadLimit(100_000, NO_LIMIT);
  const senders = [1, 2, 3].map(() => new ScriptedSender(1, 1_000_000));
  for (const sender of senders) limit.add(sender);
  run(limit, 0, 20_000);
  const sent = senders.map((sender) => sender.sent);
  assert.ok(Math.max(...sent) - Math.min(...sent) <= 16_384, sent.join(" "));
});

test("UploadLimit.share: without a limit, sends everything at once", () => {
  const limit = new UploadLimit(0, NO_LIMIT);
  const sender = new ScriptedSender(3, 5_000);
  limit.add(sender);
  assert.equal(limit.share(instant(0)), undefined);
  assert.equal(sender.waiting, 0);
});

test("UploadLimit.remove: forgets a closed connection", () => {
  const limit = new UploadLimit(1_000, NO_LIMIT);
  const sender = new ScriptedSender(1, 1_000);
  limit.add(sender);
  assert.notEqual(limit.share(instant(0)), undefined);
  const { sent } = sender;
  limit.remove(sender);
  assert.equal(limit.share(instant(60_000)), undefined);
  assert.equal(sender.sent, sent);
});

test("UploadLimit.share: respects the engine's limit, and the stream's own if it is lower", () => {
  const engine = new RateLimit(200_000);
  const streams = [0, 30_000].map((own) => {
    const limit = new UploadLimit(
      own,
      engine.budget(() => URGENCY.live),
    );
    const sender = new ScriptedSender(1, 1_000_000);
    limit.add(sender);
    return { limit, sender, at: 0 as number };
  });
  for (let at = 0; at < 20_000; at++) {
    for (const stream of streams) {
      if (stream.at <= at) stream.at = stream.limit.share(instant(at)) ?? Number.POSITIVE_INFINITY;
    }
  }
  const [first, second] = streams.map(({ sender }) => sender.sent / 20) as [number, number];
  assert.ok(Math.abs(first + second - 200_000) <= 0.05 * 200_000, `${first} and ${second}`);
  assert.ok(Math.abs(second - 30_000) <= 0.05 * 30_000, `${second}`);
});

test("UploadLimit.share: an exempt connection does not wait, and does not use the limit", () => {
  const limit = new UploadLimit(
    10_000,
    new RateLimit(10_000).budget(() => URGENCY.live),
  );
  const [near, far] = [new ScriptedSender(3, 5_000), new ScriptedSender(1, 1_000)];
  near.isExempt = true;
  limit.add(far);
  limit.add(near);
  limit.share(instant(0));
  assert.equal(near.waiting, 0);
  assert.ok(far.sent <= 32_768, `${far.sent}`);
});

test("UploadLimit.waitMs: responses outside the connections wait for them, and use the limit", () => {
  const limit = new UploadLimit(100_000, NO_LIMIT);
  const sender = new ScriptedSender(1, 1_000_000);
  limit.add(sender);
  limit.share(instant(0));
  assert.ok(limit.waitMs(instant(0)) > 0);
  limit.remove(sender);
  assert.equal(limit.waitMs(instant(1_000)), 0);
  limit.spend(100_000, instant(1_000));
  assert.ok(limit.waitMs(instant(1_000)) >= 800);
  const other = new ScriptedSender(1, 1_000);
  limit.add(other);
  assert.notEqual(limit.share(instant(1_000)), undefined);
  assert.equal(other.sent, 0);
});
