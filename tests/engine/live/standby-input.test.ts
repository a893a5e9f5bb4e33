import assert from "node:assert/strict";
import { test } from "node:test";
import { noFacts } from "../../../src/engine/live/source-feed.ts";
import { StandbyInput } from "../../../src/engine/live/standby-input.ts";
import { settled } from "../fake-clock.ts";

/** A source that the test gives bytes to. */
function fakeSource() {
  let controller!: ReadableStreamDefaultController<Uint8Array>;
  const counts = { opened: 0, cancelled: 0 };
  const open = () => {
    counts.opened++;
    const packets = () =>
      new ReadableStream<Uint8Array>(
        {
          start: (given) => {
            controller = given;
          },
          cancel: () => void counts.cancelled++,
        },
        { highWaterMark: 0 },
      );
    return { facts: noFacts(), packets };
  };
  const give = async (byte: number) => {
    controller.enqueue(new Uint8Array([byte]));
    await settled();
  };
  const end = async (error?: Error) => {
    if (error) controller.error(error);
    else controller.close();
    await settled();
  };
  return { open, give, end, counts };
}

test("StandbyInput: what comes while another is on air is thrown away, and nothing of what comes after", async () => {
  const source = fakeSource();
  const input = new StandbyInput(source.open, true);
  input.idle();
  for (const byte of [1, 2, 3]) await source.give(byte);
  for (const round of [10, 20, 30]) {
    const reader = input.use().packets().getReader();
    const reading = reader.read();
    await settled();
    for (const byte of [0, 1]) await source.give(round + byte);
    assert.deepEqual([...(await reading).value!, ...(await reader.read()).value!], [round, round + 1]);
    // A read that waits is given up with the rest, and loses nothing that comes later.
    void reader.read();
    await settled();
    await reader.cancel();
    await source.give(round + 2);
  }
  assert.deepEqual(source.counts, { opened: 1, cancelled: 0 });
  input.close();
  await settled();
  assert.equal(source.counts.cancelled, 1);
});

test("StandbyInput: an end while another is on air is told, and so is a failure", async () => {
  for (const error of [undefined, new Error("gone")]) {
    const source = fakeSource();
    const input = new StandbyInput(source.open, true);
    input.idle();
    await source.give(1);
    await source.end(error);
    assert.equal(input.isOver, error === undefined);
    assert.equal(input.failure?.reason, error);
    input.close();
  }
});

test("StandbyInput: what is there whenever it is wanted is opened each time that it is", async () => {
  const source = fakeSource();
  const input = new StandbyInput(source.open, false);
  input.idle();
  assert.deepEqual([source.counts.opened, input.facts], [0, undefined]);
  for (const opened of [1, 2]) {
    const reader = input.use().packets().getReader();
    await source.give(opened);
    assert.deepEqual([...(await reader.read()).value!], [opened]);
    await reader.cancel();
    input.idle();
    assert.deepEqual(source.counts, { opened, cancelled: opened });
  }
  input.close();
});
