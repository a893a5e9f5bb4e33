import { latin1Text } from "../../base/bytes.ts";

/** No line that says something is longer; of a longer one the end is lost. */
const MAX_LINE_BYTES = 4 * 1024;
/** A decompressor may swell one write a thousand times into a single part: it gets little at a time. */
const SLICE_BYTES = 16 * 1024;

/** The lines of a text, compressed (RFC 1952) or not, some at a time as they come. Bytes become characters one by one. */
export async function* textLines(parts: AsyncIterable<Uint8Array>): AsyncGenerator<string[]> {
  let carry = "";
  for await (const part of unpacked(parts)) {
    const lines = (carry + latin1Text(part)).split(/\r?\n/);
    carry = lines.pop()!.slice(0, MAX_LINE_BYTES);
    yield lines;
  }
  if (carry !== "") yield [carry];
}

async function* unpacked(parts: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const source = parts[Symbol.asyncIterator]();
  const first = await source.next();
  if (first.done) return;
  const isPacked = first.value[0] === 0x1f && first.value[1] === 0x8b;
  yield* isPacked ? inflated(all(first.value, source)) : all(first.value, source);
}

async function* all(first: Uint8Array, rest: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield first;
    for (let next = await rest.next(); !next.done; next = await rest.next()) yield next.value;
  } finally {
    await rest.return?.();
  }
}

async function* inflated(parts: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const stream = new DecompressionStream("gzip");
  const writer = stream.writable.getWriter();
  const feed = async () => {
    for await (const part of parts) {
      for (let at = 0; at < part.length; at += SLICE_BYTES) {
        await writer.write(Uint8Array.from(part.subarray(at, at + SLICE_BYTES)));
      }
    }
    await writer.close();
  };
  // What fails here fails the reading end as well, which reports it.
  const fed = feed().catch((error) => writer.abort(error).catch(() => {}));
  const reader = stream.readable.getReader();
  for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value;
  await fed;
}
