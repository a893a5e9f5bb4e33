import assert from "node:assert/strict";
import { test } from "node:test";
import { Gate } from "../../src/remux/gate.ts";

const never = new AbortController().signal;

test("Gate.run: so many at once, the others in their order", async () => {
  const gate = new Gate(2);
  const log: string[] = [];
  const ends: Array<() => void> = [];
  const job = (name: string) => () =>
    new Promise<void>((resolve) => {
      log.push(name);
      ends.push(resolve);
    });
  const jobs = ["a", "b", "c", "d"].map((name) => gate.run(job(name), never));
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

test("Gate.run: one that is cancelled while it waits leaves the queue, a failed one its place", async () => {
  const gate = new Gate(1);
  const stop = new AbortController();
  const first = gate.run(() => Promise.reject(new Error("broken")), never);
  const second = gate.run(async () => "never", stop.signal);
  const third = gate.run(async () => "third", never);
  stop.abort();
  await assert.rejects(first, /broken/);
  await assert.rejects(second, { code: "cancelled" });
  assert.equal(await third, "third");
});
