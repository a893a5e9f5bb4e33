import { SluiceError } from "../base/errors.ts";
import type { Outbound } from "../outbound/outbound.ts";
import type { Clock } from "../runtime/contract.ts";
import type { InspectOptions } from "./contract.ts";

/** What a server answers, of which only as much is read as is needed. */
export interface WebAnswer {
  readonly headers: Headers;
  /** Where the last redirect led. */
  readonly finalUrl: string;
  /** The MIME type of `Content-Type` in lower case, without its parameters; empty where there is none. */
  readonly mime: string;
  /** The size of the whole, in bytes, where the server says it. */
  readonly size: number | undefined;
  /** Whether what it names in turn may lead home. */
  readonly allowPrivate: boolean;
  /** The first bytes: at least `atLeast` of them, where there are as many. */
  head(atLeast: number): Promise<Uint8Array>;
  /** All of it; rejects with `url_refused` where that is more than `limitBytes`. */
  whole(limitBytes: number): Promise<Uint8Array>;
}

/** What looking at URLs takes. */
export interface WebLookParts {
  readonly outbound: Pick<Outbound, "open">;
  readonly clock: Clock;
}

/** Players give up after about 10 s: everything that one look fetches has to be there before. */
const LOOK_TIMEOUT_MS = 9_000;

/** Opens URLs for one look: together they take no longer than somebody waits. */
export class WebLook {
  readonly #parts: WebLookParts;
  readonly #options: InspectOptions;
  readonly #dueMs: number;

  constructor(parts: WebLookParts, options: InspectOptions) {
    this.#parts = parts;
    this.#options = options;
    this.#dueMs = parts.clock.now() + LOOK_TIMEOUT_MS;
  }

  /** Asks for `url` and gives the answer to `look`; what `look` does not read is not fetched. What an answer names is
   * asked `within` its own reach. Rejects with `SluiceError`. */
  async at<T>(
    url: string,
    purpose: string,
    look: (answer: WebAnswer) => Promise<T>,
    within?: Pick<WebAnswer, "allowPrivate">,
  ): Promise<T> {
    const { allowPrivateUrls, signal } = this.#options;
    const timeoutMs = Math.max(1, this.#dueMs - this.#parts.clock.now());
    const opened = await this.#parts.outbound.open(url, {
      allowPrivate: allowPrivateUrls && (within?.allowPrivate ?? true),
      signal,
      limitBytes: Number.POSITIVE_INFINITY, // What is read is counted here: films are longer than any limit.
      headTimeoutMs: timeoutMs,
      idleTimeoutMs: timeoutMs,
      timeoutMs,
      purpose,
    });
    const { status, headers, body, finalUrl } = opened;
    const reader = body.getReader();
    try {
      if (status !== 200 && status !== 206)
        throw new SluiceError("url_unreachable", `the server answered the ${purpose} with status ${status}`);
      const bytes = new GrowingBytes(reader);
      return await look({
        headers,
        finalUrl,
        allowPrivate: opened.allowPrivate ?? false,
        mime: (headers.get("content-type") ?? "").replace(/;.*$/s, "").trim().toLowerCase(),
        size: sizeOf(headers),
        head: (atLeast) => bytes.read(atLeast),
        whole: async (limitBytes) => {
          const all = await bytes.read(limitBytes + 1);
          if (all.length <= limitBytes) return all;
          throw new SluiceError("url_refused", `the ${purpose} is larger than ${limitBytes} bytes`);
        },
      });
    } finally {
      await reader.cancel().catch(() => {}); // What is left is not wanted.
    }
  }
}

/** The bytes of a stream that have been read so far. */
class GrowingBytes {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  #bytes = new Uint8Array(16 * 1024);
  #length = 0;
  #isEnded = false;

  constructor(reader: ReadableStreamDefaultReader<Uint8Array>) {
    this.#reader = reader;
  }

  async read(atLeast: number): Promise<Uint8Array> {
    while (this.#length < atLeast && !this.#isEnded) {
      const { done, value } = await this.#reader.read();
      if (done) this.#isEnded = true;
      else this.#add(value);
    }
    return this.#bytes.subarray(0, this.#length);
  }

  #add(chunk: Uint8Array): void {
    const length = this.#length + chunk.length;
    if (length > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(length, 2 * this.#bytes.length));
      larger.set(this.#bytes.subarray(0, this.#length));
      this.#bytes = larger;
    }
    this.#bytes.set(chunk, this.#length);
    this.#length = length;
  }
}

/** What is compressed on its way has another size. */
function sizeOf(headers: Headers): number | undefined {
  const text = headers.get("content-length") ?? "";
  return /^\d{1,15}$/.test(text) && !headers.has("content-encoding") ? Number(text) : undefined;
}
