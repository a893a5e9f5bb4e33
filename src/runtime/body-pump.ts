import type { ServerResponse } from "node:http";

/** The largest read buffer of a long body; each response has one and reuses it. */
const BUFFER_BYTES = 256 * 1024;
/** Bodies with a shorter length are read without a buffer: it would cost more than it saves. */
const LONG_BODY_BYTES = 64 * 1024;

interface BodyReader {
  /** True if all bytes come in one buffer. */
  readonly isReused: boolean;
  /** Returns the next bytes, or undefined at the end. The next call may overwrite them. */
  next(): Promise<Uint8Array | undefined>;
  cancel(): Promise<void>;
}

/**
 * Sends a body at the pace of the socket: reads the next bytes after the kernel has taken the last ones. Cancels the
 * body if the client hangs up; rejects if the body fails. `length` is the announced length in bytes, 0 if unknown.
 * `writing` is called before each write and before the end, `written` with the number of bytes the kernel has taken and whether
 * their buffer is used again.
 */
export async function pumpBody(
  body: ReadableStream<Uint8Array>,
  length: number,
  outgoing: ServerResponse,
  {
    writing,
    written,
  }: { readonly writing: () => void; readonly written: (bytes: number, isReused: boolean) => void },
): Promise<void> {
  const { next, cancel, isReused } = readerOf(body, length);
  let isGone = false;
  let wake: (() => void) | undefined;
  outgoing.once("close", () => {
    isGone = true;
    wake?.();
    // The source may have failed already; its error has no receiver.
    if (!outgoing.writableFinished) cancel().catch(() => {});
  });
  // `close` follows and is handled above.
  outgoing.on("error", () => {});
  const send = (bytes: Uint8Array) =>
    new Promise<void>((resolve) => {
      wake = resolve;
      writing();
      outgoing.write(bytes, () => resolve());
    });
  for (;;) {
    const bytes = await next();
    if (isGone) return;
    if (bytes === undefined) {
      writing();
      return void outgoing.end();
    }
    if (bytes.length > 0) await send(bytes);
    if (isGone) return;
    written(bytes.length, isReused);
  }
}

function readerOf(body: ReadableStream<Uint8Array>, length: number): BodyReader {
  const reader = length === 0 || length >= LONG_BODY_BYTES ? byobReader(body) : undefined;
  if (reader === undefined) return chunkReader(body);
  let buffer = new ArrayBuffer(length === 0 ? BUFFER_BYTES : Math.min(length, BUFFER_BYTES));
  return {
    isReused: true,
    async next() {
      const { done, value } = await reader.read(new Uint8Array(buffer));
      // The stream transfers the buffer and returns a new one over the same memory.
      if (value) buffer = value.buffer;
      return done ? undefined : value;
    },
    cancel: () => reader.cancel("the client hung up"),
  };
}

function chunkReader(body: ReadableStream<Uint8Array>): BodyReader {
  const reader = body.getReader();
  return {
    isReused: false,
    next: async () => (await reader.read()).value,
    cancel: () => reader.cancel("the client hung up"),
  };
}

/** Returns undefined if the body is not a byte stream; trying is the only way to find out. */
function byobReader(body: ReadableStream<Uint8Array>): ReadableStreamBYOBReader | undefined {
  try {
    return body.getReader({ mode: "byob" });
  } catch {
    return undefined;
  }
}
