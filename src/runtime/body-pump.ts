import type { ServerResponse } from "node:http";

/** The buffer that a long body is read into, again and again: one for each response that is being sent. */
const BUFFER_BYTES = 256 * 1024;
/** Bodies shorter than this come as they are: a buffer would cost more than it saves. */
const LONG_BODY_BYTES = 64 * 1024;

/** Gives the next bytes of a body, or undefined at its end. What it gave before may be overwritten. */
type NextBytes = () => Promise<Uint8Array | undefined>;

/**
 * Sends a body at the pace of the socket: some bytes, then none before the kernel has taken them. Hanging up cancels
 * the body. Rejects where the body fails. `length` is what the response says of it, 0 where it says nothing. `sent`
 * hears of all bytes that the kernel has taken.
 */
export async function pumpBody(
  body: ReadableStream<Uint8Array>,
  length: number,
  outgoing: ServerResponse,
  sent: (bytes: number) => void,
): Promise<void> {
  const { next, cancel } = readerOf(body, length);
  let isGone = false;
  let wake: (() => void) | undefined;
  outgoing.once("close", () => {
    isGone = true;
    wake?.();
    // The answer of a source that is cancelled twice, or that failed meanwhile, has no one to go to.
    if (!outgoing.writableFinished) cancel().catch(() => {});
  });
  // A broken connection is told by `close`, which comes after it.
  outgoing.on("error", () => {});
  const send = (bytes: Uint8Array) =>
    new Promise<void>((resolve) => {
      wake = resolve;
      outgoing.write(bytes, () => resolve());
    });
  for (;;) {
    const bytes = await next();
    if (isGone) return;
    if (bytes === undefined) return void outgoing.end();
    if (bytes.length > 0) await send(bytes);
    if (isGone) return;
    sent(bytes.length);
  }
}

function readerOf(
  body: ReadableStream<Uint8Array>,
  length: number,
): { next: NextBytes; cancel: () => Promise<void> } {
  const reader = length >= LONG_BODY_BYTES ? fillingReader(body) : undefined;
  if (reader === undefined) return handingReader(body);
  let buffer = new ArrayBuffer(BUFFER_BYTES);
  return {
    async next() {
      const { done, value } = await reader.read(new Uint8Array(buffer));
      // The stream gives the buffer back as a new one over the same memory.
      if (value) buffer = value.buffer;
      return done ? undefined : value;
    },
    cancel: () => reader.cancel("the asker went away"),
  };
}

function handingReader(body: ReadableStream<Uint8Array>): { next: NextBytes; cancel: () => Promise<void> } {
  const reader = body.getReader();
  return {
    next: async () => (await reader.read()).value,
    cancel: () => reader.cancel("the asker went away"),
  };
}

/** A reader that fills our buffer; undefined where the body is no byte stream, which cannot be told but by trying. */
function fillingReader(body: ReadableStream<Uint8Array>): ReadableStreamBYOBReader | undefined {
  try {
    return body.getReader({ mode: "byob" });
  } catch {
    return undefined;
  }
}
