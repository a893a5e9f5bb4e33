import assert from "node:assert/strict";
import { test } from "node:test";
import { SharedAttempt } from "../../src/async/shared-attempt.ts";

test("SharedAttempt: all requests get the result of one attempt", async () => {
  let made = 0;
  const shared = new SharedAttempt(async () => ++made);
  const { signal } = new AbortController();
  assert.deepEqual(await Promise.all([shared.get(signal), shared.get(signal)]), [1, 1]);
  assert.equal(await shared.get(signal), 1);
});

test("SharedAttempt: if the request that makes the result is aborted, another one makes it", async () => {
  const signals: AbortSignal[] = [];
  const shared = new SharedAttempt((signal) => {
    signals.push(signal);
    return signals.length > 1
      ? Promise.resolve("made")
      : new Promise<string>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  });
  const [first, second] = [new AbortController(), new AbortController()];
  const left = assert.rejects(shared.get(first.signal), { name: "AbortError" });
  const other = shared.get(second.signal);
  first.abort();
  await left;
  assert.equal(await other, "made");
  assert.deepEqual(signals, [first.signal, second.signal]);
});

test("SharedAttempt: a failure is reported, and the next request tries again", async () => {
  let tries = 0;
  const shared = new SharedAttempt(async () => {
    if (++tries === 1) throw new Error("not reachable");
    return tries;
  });
  const { signal } = new AbortController();
  await assert.rejects(shared.get(signal), /not reachable/);
  assert.equal(await shared.get(signal), 2);
});
