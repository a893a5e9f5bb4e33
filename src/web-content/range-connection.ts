import { SluiceError } from "../base/errors.ts";
import type { WebContent } from "../transfer/contract.ts";
import { mayRecover, type WebClient, wrongStatus } from "./web-client.ts";

/** The unit of fetching and caching. */
export const BLOCK_BYTES = 256 * 1024;

/** Delays before reconnecting after consecutive failures without a byte; then the read fails. */
const RETRY_MS = [0, 500, 2_000, 5_000];

/** Callbacks of a connection. */
interface ConnectionHooks {
  arrived(block: number, bytes: Uint8Array<ArrayBuffer>): void;
  /** It has fetched everything requested and is idle. */
  idle(): void;
  /** It failed and is closed. */
  failed(connection: RangeConnection, reason: unknown): void;
}

/** A connection that reads a file sequentially from a start block, as far as requested. After a failure it reconnects at the
 * same position. */
export class RangeConnection {
  readonly #client: WebClient;
  readonly #content: WebContent;
  readonly #hooks: ConnectionHooks;
  readonly #closed = new AbortController();
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  /** The block being filled. */
  #next: number;
  #filling: Uint8Array<ArrayBuffer> | undefined;
  #filled = 0;
  /** Blocks before this one are requested. */
  #requestedEnd = 0;
  #isRunning = false;
  #failures = 0;
  lastUse = 0;

  constructor(client: WebClient, content: WebContent, block: number, hooks: ConnectionHooks) {
    this.#client = client;
    this.#content = content;
    this.#next = block;
    this.#hooks = hooks;
  }

  get next(): number {
    return this.#next;
  }

  get isBusy(): boolean {
    return this.#isRunning;
  }

  /** Returns true if `block` is requested already, or at most `reachBlocks` after the requested blocks. */
  covers(block: number, reachBlocks: number): boolean {
    return block >= this.#next && block <= Math.max(this.#requestedEnd, this.#next) + reachBlocks;
  }

  /** Requests the blocks before `endBlock` and starts reading if idle. */
  request(endBlock: number): void {
    this.lastUse = this.#client.clock.now();
    this.#requestedEnd = Math.max(
      this.#requestedEnd,
      Math.min(endBlock, Math.ceil(this.#content.size / BLOCK_BYTES)),
    );
    if (this.#isRunning || this.#next >= this.#requestedEnd) return;
    this.#isRunning = true;
    this.#run().then(
      () => {
        this.#isRunning = false;
        this.#hooks.idle();
      },
      (thrown) => {
        this.#isRunning = false;
        this.close();
        this.#hooks.failed(this, thrown);
      },
    );
  }

  close(): void {
    this.#closed.abort(new SluiceError("cancelled", "the connection was closed"));
    this.#reader?.cancel().catch(() => {}); // Closing a failed connection may fail.
    this.#reader = undefined;
    this.#filling = undefined;
  }

  async #run(): Promise<void> {
    while (this.#next < this.#requestedEnd) {
      this.#closed.signal.throwIfAborted();
      try {
        this.#reader ??= await this.#connect();
        const { done, value } = await this.#reader.read();
        if (done)
          throw new SluiceError(
            "url_unreachable",
            "the server closed the connection before the end of the file",
          );
        this.#failures = 0;
        this.#append(value);
      } catch (thrown) {
        await this.#recover(thrown);
      }
    }
    if (this.#next * BLOCK_BYTES >= this.#content.size) this.close();
  }

  /** Splits received bytes into blocks. */
  #append(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length && this.#next * BLOCK_BYTES < this.#content.size; ) {
      const length = Math.min(BLOCK_BYTES, this.#content.size - this.#next * BLOCK_BYTES);
      this.#filling ??= new Uint8Array(length);
      const part = bytes.subarray(at, at + length - this.#filled);
      this.#filling.set(part, this.#filled);
      this.#filled += part.length;
      at += part.length;
      if (this.#filled < length) continue;
      const block = this.#filling;
      this.#filling = undefined;
      this.#filled = 0;
      this.#hooks.arrived(this.#next++, block);
    }
  }

  async #recover(thrown: unknown): Promise<void> {
    this.#closed.signal.throwIfAborted();
    this.#reader?.cancel().catch(() => {}); // Closing a failed connection may fail.
    this.#reader = undefined;
    const waitMs = RETRY_MS[this.#failures++];
    if (waitMs === undefined || !mayRecover(thrown)) throw thrown;
    this.#client.log.debug("connection to a media file lost, reconnecting", { reason: String(thrown) });
    if (waitMs > 0) await this.#client.pause(waitMs, this.#closed.signal);
  }

  async #connect(): Promise<ReadableStreamDefaultReader<Uint8Array>> {
    const { url, size, validator } = this.#content;
    const start = this.#next * BLOCK_BYTES + this.#filled;
    const answer = await this.#client.open(url, {
      range: { start },
      ...(validator !== undefined && { headers: { "if-range": validator } }),
      limitBytes: size,
      purpose: "media file",
      signal: this.#closed.signal,
    });
    const problem = rangeProblem(answer, this.#content, start);
    if (!problem) return answer.body.getReader();
    await answer.body.cancel().catch(() => {}); // The body is not needed.
    throw problem;
  }
}

/** Returns the error if a response is not the file from `start` on (RFC 9110 14.4, 15.3.7). */
function rangeProblem(
  { status, headers }: { readonly status: number; readonly headers: Headers },
  { size }: WebContent,
  start: number,
): SluiceError | undefined {
  if (status === 206) {
    const range = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(headers.get("content-range")?.trim() ?? "");
    if (range && Number(range[1]) === start && (range[2] === "*" || Number(range[2]) === size))
      return undefined;
    return range
      ? changed()
      : new SluiceError("url_unreachable", "the server sent a different range than requested");
  }
  if (status === 416) return changed();
  if (status !== 200) return wrongStatus(status, "the media file");
  const length = Number(headers.get("content-length") ?? size);
  if (length !== size) return changed();
  if (start === 0) return undefined;
  const what = "the server does not support byte ranges, or the file has changed";
  return new SluiceError("unsupported_content", `${what}; without ranges only MPEG-TS can be played`);
}

function changed(): SluiceError {
  return new SluiceError(
    "broken_media",
    "the file on the server has changed since it was opened; start it again",
  );
}
