import assert from "node:assert/strict";
import { test } from "node:test";
import { eitherSignal, linkedAbort, onAbort, withLinkedAbort } from "../../src/async/abort.ts";

/** A controller whose signal counts its listeners. */
function counted() {
  const abort = new AbortController();
  const { signal } = abort;
  const counts = { listeners: 0 };
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  const known = new Set<unknown>();
  signal.addEventListener = (...args: Parameters<typeof add>) => {
    known.add(args[1]);
    counts.listeners = known.size;
    add(...args);
  };
  signal.removeEventListener = (...args: Parameters<typeof remove>) => {
    known.delete(args[1]);
    counts.listeners = known.size;
    remove(...args);
  };
  return { abort, signal, counts };
}

test("withLinkedAbort: ten thousand calls leave no listener on either signal, however they end", async () => {
  const [long, other] = [counted(), counted()];
  for (let i = 0; i < 10_000; i++) {
    const work = withLinkedAbort(other.signal, long.signal, async () => {
      assert.equal(long.counts.listeners, 1);
      if (i % 2) throw new Error("no");
      return i;
    });
    await (i % 2 ? assert.rejects(work, /no/) : work);
  }
  assert.equal(long.counts.listeners, 0);
  assert.equal(other.counts.listeners, 0);
});

test("linkedAbort: fires with the reason of the first signal, and removes its listeners from both", () => {
  for (const nth of [0, 1]) {
    const both = [counted(), counted()] as const;
    const { signal } = linkedAbort(both[0].signal, both[1].signal);
    assert.equal(signal.aborted, false);
    both[nth]!.abort.abort(new Error(`number ${nth}`));
    assert.match(String(signal.reason), new RegExp(`number ${nth}`));
    for (const { counts } of both) assert.equal(counts.listeners, 0);
  }
});

test("linkedAbort: fires immediately if a signal has fired; never fires after release", () => {
  const [fired, quiet] = [counted(), counted()];
  fired.abort.abort(new Error("before"));
  for (const signals of [
    [quiet.signal, fired.signal],
    [fired.signal, quiet.signal],
  ]) {
    assert.match(String(linkedAbort(...signals).signal.reason), /before/);
    assert.equal(quiet.counts.listeners, 0);
  }
  const other = counted();
  const released = linkedAbort(quiet.signal, other.signal);
  released.release();
  other.abort.abort();
  assert.equal(released.signal.aborted, false);
});

test("eitherSignal: fires with the reason of the first signal, and its listeners can be removed from both", () => {
  for (const nth of [0, 1]) {
    const both = [counted(), counted()] as const;
    const either = eitherSignal(both[0].signal, both[1].signal);
    let fired = 0;
    const release = onAbort(either, () => fired++);
    assert.equal(either.aborted, false);
    both[nth]!.abort.abort(new Error(`number ${nth}`));
    assert.equal(fired, 1);
    assert.match(String(either.reason), new RegExp(`number ${nth}`));
    release();
    for (const { counts } of both) assert.equal(counts.listeners, 0);
  }
});
