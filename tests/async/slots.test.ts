import assert from "node:assert/strict";
import { test } from "node:test";
import { Slots } from "../../src/async/slots.ts";

const never = new AbortController().signal;

function slotsFor(limit: number, queueLimit = 10): Slots {
  return new Slots({ limit, queueLimit, queueFull: () => new Error("the queue is full") });
}

test("Slots.run: runs up to the limit at once, the others in order", async () => {
  const slots = slotsFor(2);
  const log: string[] = [];
  const ends: Array<() => void> = [];
  const job = (name: string) => () =>
    new Promise<void>((resolve) => {
      log.push(name);
      ends.push(resolve);
    });
  const jobs = ["a", "b", "c", "d"].map((name) => slots.run(job(name), never));
  await Promise.resolve();
  assert.deepEqual(log, ["a", "b"]);
  ends[0]!();
  await jobs[0];
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(log, ["a", "b", "c"]);
  ends[1]!();
  ends[2]!();
  await Promise.all([jobs[1], jobs[2]]);
  ends[3]!();
  await jobs[3];
});

test("Slots.run: a cancelled job leaves the queue, a failed job frees its slot", async () => {
  const slots = slotsFor(1);
  const stop = new AbortController();
  const first = slots.run(() => Promise.reject(new Error("broken")), never);
  const second = slots.run(async () => "never", stop.signal);
  const third = slots.run(async () => "third", never);
  stop.abort();
  await assert.rejects(first, /broken/);
  await assert.rejects(second, { name: "AbortError" });
  assert.equal(await third, "third");
});

test("Slots.take: rejects if the queue is full; a slot released twice is released once", async () => {
  const slots = slotsFor(1, 1);
  const release = await slots.take(never);
  const second = slots.take(never);
  await assert.rejects(slots.take(never), /the queue is full/);
  release();
  release();
  const releaseSecond = await second;
  assert.equal(slots.isIdle, false);
  releaseSecond();
  assert.equal(slots.isIdle, true);
});

test("Slots.run: a signal that fires as the slot becomes free passes the slot on", async () => {
  const slots = slotsFor(1);
  const stop = new AbortController();
  const release = await slots.take(never);
  const first = slots.run(async () => "never", stop.signal);
  const second = slots.run(async () => "second", never);
  release();
  stop.abort(new Error("cancelled"));
  await assert.rejects(first, /cancelled/);
  assert.equal(await second, "second");
});
