import assert from "node:assert/strict";
import { test } from "node:test";
import { deferred } from "../../src/async/deferred.ts";
import { bodyStream } from "../../src/playback/body-stream.ts";

/** A stream of the bytes 0 to `length`, its end, and how often it was closed. */
function someStream(length: number) {
  const ended = new AbortController();
  const counts = { reader: 0, stream: 0 };
  let at = 0;
  let wait: Promise<void> | undefined;
  const reader = {
    async read(into: Uint8Array) {
      await wait;
      const end = Math.min(length, at + into.length);
      for (let i = at; i < end; i++) into[i - at] = i;
      const got = end - at;
      at = end;
      return got;
    },
    close: () => void counts.reader++,
  };
  const closed = () => void counts.stream++;
  const stream = bodyStream(reader, { ended: ended.signal, read: (work) => work(), closed });
  const stall = () => {
    const gate = deferred<void>();
    wait = gate.promise;
    return gate.resolve;
  };
  return { stream, ended, counts, stall };
}

test("bodyStream fills the buffers of its consumer, and closes the reader at the end", async () => {
  const { stream, counts } = someStream(10);
  const reader = stream.getReader({ mode: "byob" });
  const got: number[] = [];
  for (let buffer = new ArrayBuffer(4); ; ) {
    const { done, value } = await reader.read(new Uint8Array(buffer));
    if (done) break;
    got.push(...value);
    buffer = value.buffer;
    assert.equal(buffer.byteLength, 4);
  }
  assert.deepEqual(got, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  assert.deepEqual(counts, { reader: 1, stream: 1 });
});

test("bodyStream fails when the session ends, also during a read", async () => {
  const reason = new Error("stopped");
  for (const isReading of [false, true]) {
    const { stream, ended, counts, stall } = someStream(10);
    const reader = stream.getReader();
    const go = stall();
    const reading = isReading ? reader.read() : undefined;
    reading?.catch(() => {});
    ended.abort(reason);
    assert.deepEqual(counts, { reader: 1, stream: 1 });
    go();
    await assert.rejects(reading ?? reader.read(), reason);
    assert.deepEqual(counts, { reader: 1, stream: 1 });
  }
});

test("bodyStream closes the reader once when it is canceled", async () => {
  const { stream, ended, counts } = someStream(10);
  await stream.cancel();
  ended.abort();
  assert.deepEqual(counts, { reader: 1, stream: 1 });
});
