import type { IncomingMessage } from "node:http";

/** How a chunk leaves the queue: one at a time, so that the socket is paused while nobody reads. */
const ONE_AT_A_TIME = { highWaterMark: 0 };

/**
 * The body of an HTTP message as a stream that its reader's pull drives. `abandon` is called when the reader cancels.
 * A message that ends before its time errors the stream.
 */
export function readableBody(message: IncomingMessage, abandon: () => void): ReadableStream<Uint8Array> {
  let isOver = false;
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        message.pause();
        message.on("data", (chunk: Uint8Array) => {
          message.pause();
          if (!isOver && chunk.length > 0) controller.enqueue(new Uint8Array(chunk));
        });
        const end = (act: () => void) => () => {
          if (isOver) return;
          isOver = true;
          act();
        };
        const fail = (error: unknown) => end(() => controller.error(error))();
        message.once(
          "end",
          end(() => controller.close()),
        );
        message.once("error", fail);
        message.once("close", () => fail(new Error("the connection ended within the body")));
      },
      pull: () => void message.resume(),
      cancel() {
        isOver = true;
        abandon();
      },
    },
    ONE_AT_A_TIME,
  );
}
