import assert from "node:assert/strict";
import { test } from "node:test";
import { transportStream } from "../../src/playback/ts-stream.ts";
import { FakeClock } from "../engine/fake-clock.ts";

/** A body over `chunks`; the test sees which are given back. */
function someBody(chunks: readonly Uint8Array[], { hasLength = false } = {}) {
  const session = new AbortController();
  const released: Uint8Array[] = [];
  const seen = { closed: 0, cancelled: 0 };
  let next = 0;
  const stream = new ReadableStream<Uint8Array>(
    {
      pull: (controller) => (next < chunks.length ? controller.enqueue(chunks[next++]!) : controller.close()),
      cancel: () => void seen.cancelled++,
    },
    { highWaterMark: 0 },
  );
  const body = transportStream({
    clock: new FakeClock(),
    ended: session.signal,
    open: async () => ({ stream, release: (chunk) => void released.push(chunk) }),
    hasLength,
    touched: () => {},
    closed: () => void seen.closed++,
  });
  return { body, released, seen, session };
}

const CHUNKS = [Uint8Array.from({ length: 1000 }, (_, i) => i), new Uint8Array(500).fill(7)];

test("transportStream: fills the buffer of the consumer, and gives a chunk back when all of it is copied", async () => {
  const { body, released, seen } = someBody(CHUNKS);
  const reader = body.getReader({ mode: "byob" });
  const got: number[] = [];
  const given: number[] = [];
  let buffer = new ArrayBuffer(400);
  for (;;) {
    const { done, value } = await reader.read(new Uint8Array(buffer));
    if (done) break;
    got.push(...value);
    given.push(released.length);
    buffer = value.buffer;
  }
  assert.deepEqual(got, [...CHUNKS[0]!, ...CHUNKS[1]!]);
  assert.deepEqual(given, [0, 0, 1, 1, 2]);
  assert.deepEqual(released, CHUNKS);
  assert.equal(seen.closed, 1);
});

test("transportStream: a consumer without a buffer gets copies", async () => {
  const { body, released } = someBody(CHUNKS);
  const parts: Uint8Array[] = [];
  for await (const part of body) parts.push(part);
  assert.deepEqual(
    parts.map(({ length }) => length),
    [1000, 500],
  );
  assert.deepEqual(parts[0], CHUNKS[0]);
  assert.ok(parts.every(({ buffer }) => CHUNKS.every((chunk) => chunk.buffer !== buffer)));
  assert.equal(released.length, 2);
});

for (const hasLength of [false, true])
  test(`transportStream: the end of the session ${hasLength ? "fails" : "ends"} a read that waits`, async () => {
    const { body, seen, session } = someBody([], { hasLength });
    const reader = body.getReader({ mode: "byob" });
    session.abort(new Error("the session ended"));
    const read = reader.read(new Uint8Array(100));
    if (hasLength) await assert.rejects(read, /the session ended/);
    else assert.equal((await read).done, true);
    assert.equal(seen.closed, 1);
  });

test("transportStream: cancelling the body cancels the media", async () => {
  const { body, seen } = someBody(CHUNKS);
  const reader = body.getReader({ mode: "byob" });
  await reader.read(new Uint8Array(100));
  await reader.cancel();
  assert.deepEqual(seen, { closed: 1, cancelled: 1 });
});
