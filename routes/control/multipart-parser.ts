import { DecodeError, SluiceError } from "../../src/base/errors.ts";
import type { UploadedFile } from "../http/dependencies.ts";
import { readPartHead } from "./multipart-head.ts";
import { clipped } from "./params.ts";

/** The limits of a form: an upload of 50 MB and its fields. */
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

/** Builds the error for a form that exceeds `MULTIPART_LIMITS.bodyBytes`. */
export function formTooLarge(): SluiceError {
  return new SluiceError("too_large", `the form is larger than ${MULTIPART_LIMITS.bodyBytes} bytes`);
}

const CR = 0x0d;
const LF = 0x0a;
const DASH = 0x2d;

/** The position of the parser: before the first boundary, after a boundary, in the header or value of a part, after the last boundary. */
type State = "start" | "boundary" | "head" | "value" | "epilogue";

/**
 * Parses a multipart form from chunks of bytes (RFC 7578, RFC 2046 5.1.1). Strict: no preamble except one line break, CRLF
 * only. Buffers at most one delimiter or one header. Throws `DecodeError`, or `too_large` if a limit is exceeded.
 */
export class MultipartParser {
  readonly #delimiter: Uint8Array;
  readonly #expectedBytes: number;
  readonly #parts: MultipartPart[] = [];
  #state: State = "start";
  /** The bytes that are not parsed yet; the first one is at `#offset` of the body. */
  #rest: Uint8Array = new Uint8Array(0);
  #offset = 0;
  #open: { readonly name: string; readonly filename?: string; readonly mime: string } | undefined;
  #sink = new ByteSink(0, 0);

  constructor(boundary: string, expectedBytes = 0) {
    this.#delimiter = new TextEncoder().encode(`\r\n--${boundary}`);
    this.#expectedBytes = Math.min(expectedBytes, MULTIPART_LIMITS.bodyBytes);
  }

  /** Parses the next bytes of the body. The caller may reuse its buffer. */
  push(bytes: Uint8Array): void {
    if (this.#offset + this.#rest.length + bytes.length > MULTIPART_LIMITS.bodyBytes) throw formTooLarge();
    if (this.#state === "epilogue") {
      this.#offset += bytes.length;
      return;
    }
    this.#rest = this.#rest.length === 0 ? bytes : joined(this.#rest, bytes);
    while (this.#step()) {}

    this.#rest = this.#rest.slice();
  }

  /** Returns all parts at the end of the body. */
  end(): readonly MultipartPart[] {
    if (this.#state !== "epilogue") throw this.#error("the body ends before its last boundary");
    return this.#parts;
  }

  /** Advances by one step. Returns false if it needs more bytes. */
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

  /** The first boundary has no line break before it; some clients send one. */
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

  /** After a boundary: two dashes if it is the last one, else optional padding and a line break. */
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
    // The line break is kept: the header of a part, even an empty one, then always ends with two line breaks.
    this.#consume(padding);
    this.#state = "head";
    return true;
  }

  /** The header ends with an empty line. */
  #head(): boolean {
    const end = indexOf(this.#rest, HEAD_END);
    if (end > MULTIPART_LIMITS.headBytes || (end < 0 && this.#rest.length > MULTIPART_LIMITS.headBytes))
      throw new SluiceError(
        "too_large",
        `the header of a part is larger than ${MULTIPART_LIMITS.headBytes} bytes`,
      );
    if (end < 0) return false;
    if (this.#parts.length >= MULTIPART_LIMITS.parts)
      throw new SluiceError("too_large", `the form has more than ${MULTIPART_LIMITS.parts} fields`);
    this.#open = readPartHead(this.#rest.subarray(2, Math.max(2, end)), this.#offset + 2);
    this.#consume(end + HEAD_END.length);
    const isFile = this.#open.filename !== undefined;
    const limit = isFile ? MULTIPART_LIMITS.fileBytes : MULTIPART_LIMITS.fieldBytes;
    this.#sink = new ByteSink(limit, isFile ? this.#expectedBytes - this.#offset : 0);
    this.#state = "value";
    return true;
  }

  /** The value ends at the delimiter. */
  #value(): boolean {
    const end = indexOf(this.#rest, this.#delimiter);
    // The last bytes may be the start of the delimiter, so they stay in the buffer.
    const length = end >= 0 ? end : Math.max(0, this.#rest.length - this.#delimiter.length + 1);
    const { name, filename, mime } = this.#open!;
    if (!this.#sink.add(this.#rest.subarray(0, length)))
      throw new SluiceError("too_large", `${clipped(name)}: expected at most ${this.#sink.limitBytes} bytes`);
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

/** Returns the index of `pattern`, which has its only CR at its start or is four bytes long; -1 if it is absent. */
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

/** The first allocation for a value of unknown length. */
const FIRST_ALLOCATION_BYTES = 4096;

/** Collects bytes up to a limit, in a buffer that grows by doubling. */
class ByteSink {
  readonly limitBytes: number;
  #bytes: Uint8Array<ArrayBuffer>;
  #length = 0;

  /** `expectedBytes` is the probable length; 0 if unknown. */
  constructor(limitBytes: number, expectedBytes: number) {
    this.limitBytes = limitBytes;
    this.#bytes = new Uint8Array(Math.max(0, Math.min(limitBytes, expectedBytes)));
  }

  /** Appends bytes. Returns false and appends nothing if they would exceed the limit. */
  add(bytes: Uint8Array): boolean {
    const length = this.#length + bytes.length;
    if (length > this.limitBytes) return false;
    if (length > this.#bytes.length) {
      const capacity = Math.max(FIRST_ALLOCATION_BYTES, 2 * this.#bytes.length, length);
      const grown = new Uint8Array(Math.min(this.limitBytes, capacity));
      grown.set(this.#bytes.subarray(0, this.#length));
      this.#bytes = grown;
    }
    this.#bytes.set(bytes, this.#length);
    this.#length = length;
    return true;
  }

  /** Returns the collected bytes; copies them if much of the buffer is unused, so that a small field does not retain it. */
  take(): Uint8Array<ArrayBuffer> {
    const whole = this.#bytes.subarray(0, this.#length);
    return this.#length < this.#bytes.length - this.#bytes.length / 8 ? whole.slice() : whole;
  }
}
