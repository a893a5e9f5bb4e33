import assert from "node:assert/strict";
import { test } from "node:test";
import { deferred } from "../../src/async/deferred.ts";
import { SegmentCache } from "../../src/playback/segment-cache.ts";
import { settled } from "../engine/fake-clock.ts";

const bytes = (length: number) => new Uint8Array(length);

test("get: makes a segment once for concurrent requests, and caches it", async () => {
  const cache = new SegmentCache();
  let made = 0;
  const make = async () => {
    made++;
    return bytes(10);
  };
  const [a, b] = await Promise.all([cache.get("x", make), cache.get("x", make)]);
  assert.equal(a, b);
  assert.equal(await cache.get("x", make), a);
  assert.equal(made, 1);
});

test("get: aborts a production when its last requester leaves, not its first", async () => {
  const cache = new SegmentCache();
  const production = deferred<Uint8Array<ArrayBuffer>>();
  let signal: AbortSignal | undefined;
  const make = (given: AbortSignal) => {
    signal = given;
    return production.promise;
  };
  const [first, second] = [new AbortController(), new AbortController()];
  const left = [
    assert.rejects(cache.get("x", make, first.signal), /first/),
    assert.rejects(cache.get("x", make, second.signal), /second/),
  ];
  first.abort(new Error("first"));
  await left[0];
  assert.equal(signal?.aborted, false);
  second.abort(new Error("second"));
  await left[1];
  assert.equal(signal?.aborted, true);
  const again = cache.get("x", async () => bytes(3));
  assert.equal((await again).length, 3, "a later request starts a new production");
  production.reject(new Error("late"));
  await settled();
});

test("get: rejects all requesters after a failure, and tries again at the next request", async () => {
  const cache = new SegmentCache();
  const fail = () => Promise.reject(new Error("no"));
  const both = [cache.get("x", fail), cache.get("x", fail)];
  for (const request of both) await assert.rejects(request, /no/);
  assert.equal((await cache.get("x", async () => bytes(1))).length, 1);
});

test("keep: evicts least recently requested segments; one above the limit stays until the next", async () => {
  const cache = new SegmentCache(100);
  for (const key of ["a", "b", "c"]) await cache.get(key, async () => bytes(30));
  cache.held("a");
  await cache.get("d", async () => bytes(30));
  assert.deepEqual(
    ["a", "b", "c", "d"].map((key) => cache.held(key) !== undefined),
    [true, false, true, true],
  );
  assert.equal(cache.bytes, 90);
  await cache.get("huge", async () => bytes(101));
  assert.ok(cache.held("huge"));
  assert.equal(cache.bytes, 101);
  await cache.get("e", async () => bytes(30));
  assert.equal(cache.held("huge"), undefined);
  assert.equal(cache.bytes, 30);
});
