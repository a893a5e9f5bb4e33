import assert from "node:assert/strict";
import { test } from "node:test";
import { instant } from "../../src/base/time.ts";
import { BLOCK_BYTES } from "../../src/protocol/swarm/limits.ts";
import { RequestQueue } from "../../src/protocol/swarm/request-queue.ts";
import { EventQueue } from "./event-queue.ts";

/** A seeder as seen by one queue of requests: a link with a delay and a rate, which may answer in pulses. */
interface Seeder {
  readonly roundTripMs: number;
  readonly bytesPerMs: number;
  /** Interval at which it reads its requests; 0 for at once. */
  readonly pulseMs: number;
}

/** Keeps the queue full for `ms`; returns the bytes received between `fromMs` and the end. */
function fetch(seeder: Seeder, ms: number, fromMs: number): { bytes: number; queue: RequestQueue } {
  const events = new EventQueue();
  const queue = new RequestQueue();
  let next = 0;
  let linkFreeAt = 0;
  let bytes = 0;
  let waiting: number[] = [];
  const answer = (block: number) => {
    linkFreeAt = Math.max(linkFreeAt, events.now) + BLOCK_BYTES / seeder.bytesPerMs;
    events.at(linkFreeAt + seeder.roundTripMs / 2, () => {
      if (events.now >= fromMs) bytes += BLOCK_BYTES;
      const at = queue.find(0, block);
      queue.answered(at, BLOCK_BYTES, instant(events.now));
      queue.remove(at);
      fill();
    });
  };
  const fill = () => {
    for (let room = queue.room(); room > 0; room--) {
      const block = next++;
      queue.push(0, block, instant(events.now));
      events.after(seeder.roundTripMs / 2, () =>
        seeder.pulseMs === 0 ? answer(block) : waiting.push(block),
      );
    }
  };
  const pulse = () => {
    const all = waiting;
    waiting = [];
    for (const block of all) answer(block);
    events.after(seeder.pulseMs, pulse);
  };
  if (seeder.pulseMs > 0) events.after(seeder.pulseMs, pulse);
  fill();
  events.run(ms, () => false);
  return { bytes, queue };
}

const MBIT = 1e6 / 8 / 1000;

for (const roundTripMs of [100, 200]) {
  for (const mbit of [20, 50]) {
    test(`RequestQueue fills a link of ${mbit} Mbit/s and ${roundTripMs} ms within 3 s`, () => {
      const rate = mbit * MBIT;
      const { bytes } = fetch({ roundTripMs, bytesPerMs: rate, pulseMs: 0 }, 8_000, 3_000);
      assert.ok(bytes >= 0.9 * rate * 5_000, `${((100 * bytes) / (rate * 5_000)).toFixed(0)} %`);
    });
  }
}

for (const mbit of [8, 20, 50]) {
  test(`RequestQueue brings a seeder that works each 500 ms to ${mbit} Mbit/s within 6 s`, () => {
    const rate = mbit * MBIT;
    const { bytes } = fetch({ roundTripMs: 20, bytesPerMs: rate, pulseMs: 500 }, 12_000, 6_000);
    assert.ok(bytes >= 0.8 * rate * 6_000, `${((100 * bytes) / (rate * 6_000)).toFixed(0)} %`);
  });
}

test("RequestQueue stays short with a peer that answers evenly: about 0.4 s of its rate", () => {
  for (const bytesPerMs of [150, 300, 3_000]) {
    const { queue } = fetch({ roundTripMs: 40, bytesPerMs, pulseMs: 0 }, 10_000, 0);
    const queuedMs = (queue.target * BLOCK_BYTES) / bytesPerMs;
    assert.ok(queuedMs <= 500 + (2 * BLOCK_BYTES) / bytesPerMs, `${queuedMs} ms at ${bytesPerMs} bytes a ms`);
  }
});

test("RequestQueue: the first block of a peer with an unknown rate is due after 450 ms", () => {
  assert.equal(new RequestQueue().dueMs(instant(0)), 450);
});
