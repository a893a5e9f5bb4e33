import type { ByteReader } from "./contract.ts";

/** What is handed over at once: large enough that a chunk's overhead vanishes, small beside the socket's buffers. */
export const CHUNK_BYTES = 256 * 1024;

/**
 * A byte stream over a reader: a pull is a read. Whoever brings a buffer (`getReader({ mode: "byob" })`) has it filled
 * straight from the pieces, so that a long stream makes no garbage; others get a new chunk for each read.
 */
export function readerStream(reader: ByteReader): ReadableStream<Uint8Array<ArrayBuffer>> {
  let isOver = false;
  const hand = (controller: ReadableByteStreamController, into: Uint8Array<ArrayBuffer>, length: number) => {
    if (isOver) return;
    const { byobRequest } = controller;
    if (length > 0) {
      if (byobRequest) byobRequest.respond(length);
      else controller.enqueue(into.subarray(0, length));
      return;
    }
    isOver = true;
    controller.close();
    byobRequest?.respond(0); // A buffer that still waits is given back empty (Streams standard, 4.7.3).
  };
  return new ReadableStream({
    type: "bytes",
    pull(controller) {
      const into = bufferOf(controller);
      const got = reader.read(into);
      if (typeof got === "number") return hand(controller, into, got);
      return got.then((length) => hand(controller, into, length));
    },
    cancel(reason) {
      isOver = true;
      reader.close(reason);
    },
  });
}

function bufferOf({ byobRequest }: ReadableByteStreamController): Uint8Array<ArrayBuffer> {
  const view = byobRequest?.view;
  if (!view) return new Uint8Array(CHUNK_BYTES);
  return new Uint8Array(view.buffer as ArrayBuffer, view.byteOffset, view.byteLength);
}
