import assert from "node:assert/strict";
import { test } from "node:test";
import { bodyChunks } from "../../routes/body-chunks.ts";
import { SluiceError } from "../../src/base/errors.ts";

/** A body of so many chunks of so many bytes; counts what is taken of it. */
function body(chunks: number, chunkBytes: number) {
  const seen = { pulls: 0, isCancelled: false };
  const stream = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        if (seen.pulls++ < chunks) controller.enqueue(new Uint8Array(chunkBytes));
        else controller.close();
      },
      cancel() {
        seen.isCancelled = true;
      },
    },
    { highWaterMark: 0 },
  );
  return { stream, seen };
}

/** Takes one chunk and refuses the rest. */
async function refuse(stream: ReadableStream<Uint8Array>): Promise<void> {
  await assert.rejects(async () => {
    for await (const _ of bodyChunks(stream)) throw new SluiceError("too_large", "enough");
  }, /enough/);
}

test("bodyChunks: all chunks in order", async () => {
  const { stream, seen } = body(3, 10);
  let length = 0;
  for await (const chunk of bodyChunks(stream)) length += chunk.length;
  assert.deepEqual([length, seen.pulls, seen.isCancelled], [30, 4, false]);
});

test("bodyChunks: the rest of a body that is refused is thrown away, so that its sender can read why", async () => {
  const { stream, seen } = body(30, 1_000_000);
  await refuse(stream);
  assert.deepEqual([seen.pulls, seen.isCancelled], [31, false]);
});

test("bodyChunks: a body without an end is cancelled, whatever the size of its chunks", async () => {
  const large = body(Number.POSITIVE_INFINITY, 1_000_000);
  await refuse(large.stream);
  assert.ok(large.seen.isCancelled && large.seen.pulls < 70);
  const tiny = body(Number.POSITIVE_INFINITY, 1);
  await refuse(tiny.stream);
  assert.ok(tiny.seen.isCancelled && tiny.seen.pulls < 70_000);
});

test("bodyChunks: a sender that goes away is cancelled, and no bug", async () => {
  const stream = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.error(new Error("reset")),
  });
  await assert.rejects(
    async () => {
      for await (const _ of bodyChunks(stream)) assert.fail();
    },
    (thrown) => thrown instanceof SluiceError && thrown.code === "cancelled",
  );
});
