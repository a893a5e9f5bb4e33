import assert from "node:assert/strict";
import { test } from "node:test";
import { StandbyInput } from "../../src/live/broadcast/standby-input.ts";
import { noFacts } from "../../src/live/input/source-feed.ts";
import { settled } from "../engine/fake-clock.ts";

/** A source whose bytes the test provides. */
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

test("StandbyInput: discards data while another source is on air, and none afterwards", async () => {
  const source = fakeSource();
  const input = new StandbyInput(source.open, true);
  input.discard();
  for (const byte of [1, 2, 3]) await source.give(byte);
  for (const round of [10, 20, 30]) {
    const reader = input.use().packets().getReader();
    const reading = reader.read();
    await settled();
    for (const byte of [0, 1]) await source.give(round + byte);
    assert.deepEqual([...(await reading).value!, ...(await reader.read()).value!], [round, round + 1]);
    // A pending read is cancelled with the stream, and no later data is lost.
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

test("StandbyInput: reports an end or failure while another source is on air", async () => {
  for (const error of [undefined, new Error("gone")]) {
    const source = fakeSource();
    const input = new StandbyInput(source.open, true);
    input.discard();
    await source.give(1);
    await source.end(error);
    assert.equal(input.hasEnded, error === undefined);
    assert.equal(input.failure?.reason, error);
    input.close();
  }
});

test("StandbyInput: opens a file for each use", async () => {
  const source = fakeSource();
  const input = new StandbyInput(source.open, false);
  input.discard();
  assert.deepEqual([source.counts.opened, input.facts], [0, undefined]);
  for (const opened of [1, 2]) {
    const reader = input.use().packets().getReader();
    await source.give(opened);
    assert.deepEqual([...(await reader.read()).value!], [opened]);
    await reader.cancel();
    input.discard();
    assert.deepEqual(source.counts, { opened, cancelled: opened });
  }
  input.close();
});
