import assert from "node:assert/strict";
import { test } from "node:test";
import { bodyChunks } from "../../routes/http/request-body.ts";
import { SluiceError } from "../../src/base/errors.ts";

/** Creates a body of equal chunks that counts the chunks read. */
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

/** Reads one chunk and refuses the rest. */
async function refuse(stream: ReadableStream<Uint8Array>): Promise<void> {
  await assert.rejects(async () => {
    for await (const _ of bodyChunks(stream)) throw new SluiceError("too_large", "enough");
  }, /enough/);
}

test("bodyChunks: yields all chunks in order", async () => {
  const { stream, seen } = body(3, 10);
  let length = 0;
  for await (const chunk of bodyChunks(stream)) length += chunk.length;
  assert.deepEqual([length, seen.pulls, seen.isCancelled], [30, 4, false]);
});

test("bodyChunks: discards the rest of a refused body, so that the client can read the error", async () => {
  const { stream, seen } = body(30, 1_000_000);
  await refuse(stream);
  assert.deepEqual([seen.pulls, seen.isCancelled], [31, false]);
});

test("bodyChunks: cancels an endless body, with chunks of any size", async () => {
  const large = body(Number.POSITIVE_INFINITY, 1_000_000);
  await refuse(large.stream);
  assert.ok(large.seen.isCancelled && large.seen.pulls < 70);
  const tiny = body(Number.POSITIVE_INFINITY, 1);
  await refuse(tiny.stream);
  assert.ok(tiny.seen.isCancelled && tiny.seen.pulls < 70_000);
});

test("bodyChunks: a disconnected client is the error cancelled, not a bug", async () => {
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
