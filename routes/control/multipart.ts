import { DecodeError, SluiceError } from "../../src/base/errors.ts";
import { bodyChunks } from "../body-chunks.ts";
import { ByteSink } from "./byte-sink.ts";
import { readPartHead } from "./multipart-head.ts";
import { clipped, type UploadedFile } from "./params.ts";

/** What a form may hold: an upload of 50 MB, and its fields. */
export const MULTIPART_LIMITS = {
  parts: 100,
  headBytes: 8 * 1024,
  fieldBytes: 64 * 1024,
  fileBytes: 50_000_000,
  bodyBytes: 55_000_000,
} as const;

/** One field of a form. */
export interface MultipartPart {
  readonly name: string;
  readonly value: string | UploadedFile;
}

/** The boundary that a content type names (RFC 2046 5.1.1); throws `bad_parameter` where it names none. */
export function boundaryOf(contentType: string): string {
  const match = /;\s*boundary=(?:"([^"]*)"|([^\s;"]+))\s*(?:;|$)/i.exec(contentType);
  const boundary = match?.[1] ?? match?.[2] ?? "";
  if (/^[0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-]$/.test(boundary)) return boundary;
  throw new SluiceError(
    "bad_parameter",
    `content-type: expected multipart/form-data with a boundary of 1 to 70 characters, got "${clipped(contentType)}"`,
  );
}

/**
 * Reads a form while it comes. `expectedBytes` is what the sender announces, 0 where it does not: memory for a file is
 * then taken once. Rejects with `bad_parameter`, `too_large` or `cancelled`.
 */
export async function readMultipart(
  body: ReadableStream<Uint8Array>,
  options: { readonly boundary: string; readonly expectedBytes: number },
): Promise<readonly MultipartPart[]> {
  if (options.expectedBytes > MULTIPART_LIMITS.bodyBytes) throw tooLong();
  const parser = new MultipartParser(options.boundary, options.expectedBytes);
  try {
    for await (const chunk of bodyChunks(body)) parser.push(chunk);
    return parser.end();
  } catch (thrown) {
    if (!(thrown instanceof DecodeError)) throw thrown;
    throw new SluiceError("bad_parameter", thrown.message, { cause: thrown });
  }
}

function tooLong(): SluiceError {
  return new SluiceError("too_large", `a form of more than ${MULTIPART_LIMITS.bodyBytes} bytes`);
}

const CR = 0x0d;
const LF = 0x0a;
const DASH = 0x2d;

/** Where the parser is: before the first boundary, right after one, in a part's head or value, behind the last boundary. */
type State = "start" | "boundary" | "head" | "value" | "epilogue";

/**
 * Bytes in, parts out (RFC 7578, RFC 2046 5.1.1). Strict: no preamble but one line break, CRLF only. Keeps at most one
 * delimiter or one head of what it has not understood yet. Throws `DecodeError`, and `too_large` where a limit is passed.
 */
export class MultipartParser {
  readonly #delimiter: Uint8Array;
  readonly #expectedBytes: number;
  readonly #parts: MultipartPart[] = [];
  #state: State = "start";
  /** What came and is not understood yet; its first byte is at `#offset` of the body. */
  #rest: Uint8Array = new Uint8Array(0);
  #offset = 0;
  #open: { readonly name: string; readonly filename?: string; readonly mime: string } | undefined;
  #sink = new ByteSink(0, 0);

  constructor(boundary: string, expectedBytes = 0) {
    this.#delimiter = new TextEncoder().encode(`\r\n--${boundary}`);
    this.#expectedBytes = Math.min(expectedBytes, MULTIPART_LIMITS.bodyBytes);
  }

  /** Takes the next bytes of the body. */
  push(bytes: Uint8Array): void {
    if (this.#offset + this.#rest.length + bytes.length > MULTIPART_LIMITS.bodyBytes) throw tooLong();
    if (this.#state === "epilogue") {
      this.#offset += bytes.length;
      return;
    }
    this.#rest = this.#rest.length === 0 ? bytes : joined(this.#rest, bytes);
    while (this.#step()) {}
    // The caller may use its buffer again.
    this.#rest = this.#rest.slice();
  }

  /** All parts, once the body is over. */
  end(): readonly MultipartPart[] {
    if (this.#state !== "epilogue") throw this.#error("the body ends before its last boundary");
    return this.#parts;
  }

  /** One step further; false where more bytes are needed. */
  #step(): boolean {
    switch (this.#state) {
      case "start":
        return this.#start();
      case "boundary":
        return this.#boundary();
      case "head":
        return this.#head();
      case "value":
        return this.#value();
      case "epilogue":
        this.#consume(this.#rest.length);
        return false;
    }
  }

  /** The first boundary has no line break before it, or (from some senders) one. */
  #start(): boolean {
    const begin = this.#rest[0] === CR ? 0 : 2;
    const length = this.#delimiter.length - begin;
    const seen = Math.min(length, this.#rest.length);
    for (let i = 0; i < seen; i++) {
      if (this.#rest[i] !== this.#delimiter[begin + i]) throw this.#error("expected the boundary");
    }
    if (seen < length) return false;
    this.#consume(length);
    this.#state = "boundary";
    return true;
  }

  /** Behind a boundary: two dashes after the last one, else a line break; padding before it is allowed. */
  #boundary(): boolean {
    if (this.#rest.length < 2) return false;
    if (this.#rest[0] === DASH && this.#rest[1] === DASH) {
      this.#state = "epilogue";
      return true;
    }
    const padding = this.#rest.findIndex((byte) => byte !== 0x20 && byte !== 0x09);
    if (padding > 100) throw this.#error("expected a line break after the boundary");
    if (padding < 0) {
      if (this.#rest.length > 100) throw this.#error("expected a line break after the boundary");
      return false;
    }
    if (this.#rest.length < padding + 2) return false;
    if (this.#rest[padding] !== CR || this.#rest[padding + 1] !== LF)
      throw this.#error("expected a line break after the boundary");
    // The line break stays: a part without a head then ends with the same two as any other.
    this.#consume(padding);
    this.#state = "head";
    return true;
  }

  /** The head ends with an empty line. */
  #head(): boolean {
    const end = indexOf(this.#rest, HEAD_END);
    if (end > MULTIPART_LIMITS.headBytes || (end < 0 && this.#rest.length > MULTIPART_LIMITS.headBytes))
      throw new SluiceError("too_large", `a part's head of more than ${MULTIPART_LIMITS.headBytes} bytes`);
    if (end < 0) return false;
    if (this.#parts.length >= MULTIPART_LIMITS.parts)
      throw new SluiceError("too_large", `a form of more than ${MULTIPART_LIMITS.parts} fields`);
    this.#open = readPartHead(this.#rest.subarray(2, Math.max(2, end)), this.#offset + 2);
    this.#consume(end + HEAD_END.length);
    const isFile = this.#open.filename !== undefined;
    const limit = isFile ? MULTIPART_LIMITS.fileBytes : MULTIPART_LIMITS.fieldBytes;
    this.#sink = new ByteSink(limit, isFile ? this.#expectedBytes - this.#offset : 0);
    this.#state = "value";
    return true;
  }

  /** The value ends where the delimiter begins. */
  #value(): boolean {
    const end = indexOf(this.#rest, this.#delimiter);
    // What may be the head of the delimiter waits for more.
    const length = end >= 0 ? end : Math.max(0, this.#rest.length - this.#delimiter.length + 1);
    const { name, filename, mime } = this.#open!;
    if (!this.#sink.add(this.#rest.subarray(0, length)))
      throw new SluiceError("too_large", `${clipped(name)}: more than ${this.#sink.limitBytes} bytes`);
    this.#consume(length);
    if (end < 0) return false;
    const bytes = this.#sink.take();
    const value = filename === undefined ? decodeField(bytes, this.#offset) : { filename, mime, bytes };
    this.#parts.push({ name, value });
    this.#consume(this.#delimiter.length);
    this.#state = "boundary";
    return true;
  }

  #consume(length: number): void {
    this.#rest = this.#rest.subarray(length);
    this.#offset += length;
  }

  #error(message: string): DecodeError {
    return new DecodeError("multipart form", this.#offset, message);
  }
}

const HEAD_END = new Uint8Array([CR, LF, CR, LF]);

/** Where `pattern`, which has its only CR at its start or is four bytes, begins; -1 where it does not. */
function indexOf(bytes: Uint8Array, pattern: Uint8Array): number {
  for (let at = bytes.indexOf(CR); at >= 0; at = bytes.indexOf(CR, at + 1)) {
    if (at + pattern.length > bytes.length) return -1;
    let i = 1;
    while (i < pattern.length && bytes[at + i] === pattern[i]) i++;
    if (i === pattern.length) return at;
  }
  return -1;
}

function joined(a: Uint8Array, b: Uint8Array): Uint8Array {
  const all = new Uint8Array(a.length + b.length);
  all.set(a);
  all.set(b, a.length);
  return all;
}

function decodeField(bytes: Uint8Array, offset: number): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new DecodeError("multipart form", offset, "expected UTF-8 text");
  }
}
