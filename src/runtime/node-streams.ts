import type { IncomingMessage } from "node:http";

/**
 * Converts the body of an HTTP message to a pull-driven stream; the socket is paused between reads. `onCancel` is called
 * if the reader cancels. A message that ends early errors the stream.
 */
export function readableBody(message: IncomingMessage, onCancel: () => void): ReadableStream<Uint8Array> {
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
        message.once("close", () => fail(new Error("the connection closed before the end of the body")));
      },
      pull: () => void message.resume(),
      cancel() {
        isOver = true;
        onCancel();
      },
    },
    { highWaterMark: 0 },
  );
}
