import assert from "node:assert/strict";
import { test } from "node:test";
import { segmentBody } from "../../src/playback/segment-body.ts";
import { FakeClock } from "../engine/fake-clock.ts";

const SEGMENT = Uint8Array.from({ length: 1000 }, (_, i) => i);

/** A body of the segment; the test counts how often it is made again. */
function someBody(range = { start: 0, end: SEGMENT.length }, isLive = false) {
  const clock = new FakeClock();
  const made = { count: 0, bytes: SEGMENT };
  const again = async () => {
    made.count++;
    return made.bytes.slice();
  };
  const { size, open } = segmentBody(clock, SEGMENT.slice(), isLive ? undefined : again);
  const reader = open(range).getReader({ mode: "byob" });
  const read = async () => {
    const { done, value } = await reader.read(new Uint8Array(300));
    return done ? undefined : [...value];
  };
  return { clock, made, size, reader, read };
}

test("segmentBody: returns the range in the buffers of the consumer", async () => {
  const { read, size, made, clock } = someBody({ start: 100, end: 900 });
  assert.equal(size, 1000);
  assert.deepEqual(await read(), [...SEGMENT.subarray(100, 400)]);
  assert.deepEqual(await read(), [...SEGMENT.subarray(400, 700)]);
  assert.deepEqual(await read(), [...SEGMENT.subarray(700, 900)]);
  assert.equal(await read(), undefined);
  assert.deepEqual([made.count, clock.waiting], [0, 0]);
});

test("segmentBody: a player that stops reading holds no segment; it is made again when the player continues", async () => {
  const { read, clock, made } = someBody();
  await read();
  await clock.advance(10_000);
  assert.equal(clock.waiting, 0);
  assert.equal(made.count, 0);
  assert.deepEqual(await read(), [...SEGMENT.subarray(300, 600)]);
  assert.equal(made.count, 1);
  assert.deepEqual(await read(), [...SEGMENT.subarray(600, 900)]);
  assert.equal(made.count, 1);
});

test("segmentBody: a slow player keeps its segment", async () => {
  const { read, clock, made } = someBody();
  for (let i = 0; i < 3; i++) {
    await read();
    await clock.advance(1_500);
  }
  assert.deepEqual(await read(), [...SEGMENT.subarray(900)]);
  assert.equal(made.count, 0);
});

test("segmentBody: a live segment stays, because it cannot be made again", async () => {
  const { read, clock } = someBody(undefined, true);
  await read();
  await clock.advance(60_000);
  assert.deepEqual(await read(), [...SEGMENT.subarray(300, 600)]);
});

test("segmentBody: fails if the segment is another one when it is made again", async () => {
  const { read, clock, made } = someBody();
  await read();
  made.bytes = SEGMENT.subarray(1);
  await clock.advance(10_000);
  await assert.rejects(read(), { code: "broken_media" });
});

test("segmentBody: cancelling it ends its timer", async () => {
  const { read, reader, clock } = someBody();
  await read();
  await reader.cancel();
  assert.equal(clock.waiting, 0);
});
