import type { ByteReader } from "../base/byte-source.ts";

/** Size of a chunk: large enough that its overhead is negligible, small compared to the buffers of sockets. */
const CHUNK_BYTES = 256 * 1024;

/**
 * Returns a byte stream over a reader; each pull is one read. A consumer that supplies its own buffer
 * (`getReader({ mode: "byob" })`) gets it filled directly from the pieces, without garbage; others get a new chunk per read.
 */
export function readerStream(reader: ByteReader): ReadableStream<Uint8Array<ArrayBuffer>> {
  let isOver = false;
  const deliver = (
    controller: ReadableByteStreamController,
    into: Uint8Array<ArrayBuffer>,
    length: number,
  ) => {
    if (isOver) return;
    const { byobRequest } = controller;
    if (length > 0) {
      if (byobRequest) byobRequest.respond(length);
      else controller.enqueue(into.subarray(0, length));
      return;
    }
    isOver = true;
    controller.close();
    byobRequest?.respond(0); // A pending buffer must be returned empty (Streams standard, 4.7.3).
  };
  return new ReadableStream({
    type: "bytes",
    pull(controller) {
      const into = bufferOf(controller);
      const got = reader.read(into);
      if (typeof got === "number") return deliver(controller, into, got);
      return got.then((length) => deliver(controller, into, length));
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
