import { z } from "zod";
import { SluiceError } from "../../src/base/errors.ts";

/**
 * Bytes read and discarded after a body is refused, as large again as the largest upload: a client that is cut off while
 * it sends never reads the error.
 */
const DRAIN_BYTES = 64_000_000;
/** The least that a discarded chunk counts, so that a body of tiny chunks costs no more work. */
const CHUNK_COST_BYTES = 1024;

/** A transport file of 10 MB as base64, and the JSON around it. */
const MAX_TRANSPORT_FILE_BODY_BYTES = 14_000_000;

const uploadSchema = z.object({ transport_file_data: z.string().min(1) });

/**
 * Iterates over the chunks of a request body. If the consumer stops early (also by throwing), the rest is read and
 * discarded up to a limit, then the stream is cancelled. Rejects with `cancelled` if the client disconnects.
 */
export async function* bodyChunks(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array, void, void> {
  const reader = body.getReader();
  let isOver = false;
  try {
    while (true) {
      const chunk = await reader.read().catch((cause) => {
        isOver = true;
        throw new SluiceError("cancelled", "the connection ended within the body", { cause });
      });
      isOver = chunk.done;
      if (chunk.value === undefined) return;
      yield chunk.value;
    }
  } finally {
    if (!isOver) await drain(reader);
  }
}

async function drain(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
  let left = DRAIN_BYTES;
  while (left > 0) {
    const chunk = await reader.read().catch(() => undefined);
    if (chunk?.value === undefined) return;
    left -= Math.max(chunk.value.length, CHUNK_COST_BYTES);
  }
  await reader.cancel("the body is too large").catch(() => {});
}

/** Passes chunks through, and throws the error that `tooLarge` creates before they exceed `limitBytes`. */
export async function* limitedChunks(
  chunks: AsyncIterable<Uint8Array>,
  limitBytes: number,
  tooLarge: () => SluiceError,
): AsyncGenerator<Uint8Array, void, void> {
  let length = 0;
  for await (const chunk of chunks) {
    length += chunk.length;
    if (length > limitBytes) throw tooLarge();
    yield chunk;
  }
}

/**
 * Reads a body as UTF-8 text. Stops at `limitBytes` regardless of `content-length`, and then throws the error that
 * `tooLarge` creates. Rejects with `cancelled` if the client disconnects.
 */
export async function limitedText(
  body: ReadableStream<Uint8Array>,
  limitBytes: number,
  tooLarge: () => SluiceError,
): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of limitedChunks(bodyChunks(body), limitBytes, tooLarge))
    text += decoder.decode(chunk, { stream: true });
  return text + decoder.decode();
}

/** Reads a body of bytes, with the limits of `limitedText`. */
export async function limitedBytes(
  body: ReadableStream<Uint8Array>,
  limitBytes: number,
  tooLarge: () => SluiceError,
): Promise<Uint8Array<ArrayBuffer>> {
  let bytes = new Uint8Array(64 * 1024);
  let length = 0;
  for await (const chunk of limitedChunks(bodyChunks(body), limitBytes, tooLarge)) {
    const end = length + chunk.length;
    if (end > bytes.length) {
      // One buffer, because a list of tiny chunks takes many times their bytes.
      const larger = new Uint8Array(Math.max(end, 2 * bytes.length));
      larger.set(bytes.subarray(0, length));
      bytes = larger;
    }
    bytes.set(chunk, length);
    length = end;
  }
  return bytes.subarray(0, length);
}

/**
 * Reads the transport file of `POST {"transport_file_data": base64}`. Returns undefined if the body is empty. Rejects
 * with `bad_transport_file`.
 */
export async function transportFileOf(request: Request): Promise<Uint8Array<ArrayBuffer> | undefined> {
  if (!request.body) return undefined;
  const limitBytes = MAX_TRANSPORT_FILE_BODY_BYTES;
  const tooLarge = () =>
    new SluiceError("bad_transport_file", `the request body is larger than ${limitBytes} bytes`);
  const body = await limitedText(request.body, limitBytes, tooLarge);
  if (body.trim() === "") return undefined;
  try {
    return decodeBase64(uploadSchema.parse(JSON.parse(body)).transport_file_data);
  } catch (thrown) {
    const expected = 'expected {"transport_file_data": "<base64>"} as the request body';
    throw new SluiceError("bad_transport_file", expected, { cause: thrown });
  }
}

/** Decodes base64 in the standard or the URL-safe alphabet, padded or not. */
function decodeBase64(text: string): Uint8Array<ArrayBuffer> {
  const standard = text.replaceAll("-", "+").replaceAll("_", "/").replaceAll(/\s/g, "");
  const binary = atob(standard);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}
