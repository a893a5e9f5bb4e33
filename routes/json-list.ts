import { encodeUtf8 } from "../src/base/utf8.ts";

/** So much text is gathered for one chunk. */
const CHUNK_UNITS = 32 * 1024;

/** JSON with a long list in it. */
export interface JsonList<T> {
  /** All that stands before the first element. */
  readonly head: string;
  readonly elements: AsyncIterable<T>;
  text(element: T): string;
  /** All that stands behind the last one. */
  readonly tail: string;
}

/** A body that is written while its elements are read, no faster than it is pulled. */
export function jsonListStream<T>({ head, elements, text, tail }: JsonList<T>): ReadableStream<Uint8Array> {
  let rest: AsyncIterator<T> | undefined;
  let isFirst = true;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        let chunk = rest === undefined ? head : "";
        rest ??= elements[Symbol.asyncIterator]();
        while (chunk.length < CHUNK_UNITS) {
          const next = await rest.next();
          if (next.done) {
            controller.enqueue(encodeUtf8(chunk + tail));
            controller.close();
            return;
          }
          chunk += `${isFirst ? "" : ", "}${text(next.value)}`;
          isFirst = false;
        }
        controller.enqueue(encodeUtf8(chunk));
      },
      async cancel() {
        await rest?.return?.();
      },
    },
    { highWaterMark: 0 },
  );
}
