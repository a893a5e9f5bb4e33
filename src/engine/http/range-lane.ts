import { SluiceError } from "../../base/errors.ts";
import { mayRecover, type WebClient, wrongStatus } from "./web-client.ts";
import type { WebContent } from "./web-content.ts";

/** What is fetched and kept as one. */
export const BLOCK_BYTES = 256 * 1024;

/** How long is waited before a connection that broke is made again; so often in a row without a byte. */
const RETRY_MS = [0, 500, 2_000, 5_000];

/** What a lane tells. */
interface LaneHooks {
  arrived(block: number, bytes: Uint8Array<ArrayBuffer>): void;
  /** It stands still: nothing more is wanted of it. */
  rested(): void;
  /** It has come to its end: this is why. */
  failed(lane: RangeLane, reason: unknown): void;
}

/** One connection that reads a file on from one place, as far as somebody wants, block by block. It is made anew where it
 * breaks, from where it broke. */
export class RangeLane {
  readonly #client: WebClient;
  readonly #content: WebContent;
  readonly #hooks: LaneHooks;
  readonly #closed = new AbortController();
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  /** The block that comes next, and what is there of it. */
  #next: number;
  #filling: Uint8Array<ArrayBuffer> | undefined;
  #filled = 0;
  /** Blocks before this are wanted. */
  #wantEnd = 0;
  #isRunning = false;
  #failures = 0;
  lastUse = 0;

  constructor(client: WebClient, content: WebContent, block: number, hooks: LaneHooks) {
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

  /** Whether this block will come, or is the next that could. */
  covers(block: number, reachBlocks: number): boolean {
    return block >= this.#next && block <= Math.max(this.#wantEnd, this.#next) + reachBlocks;
  }

  /** Reads on to the end of `endBlock`, exclusive. */
  want(endBlock: number): void {
    this.lastUse = this.#client.clock.now();
    this.#wantEnd = Math.max(this.#wantEnd, Math.min(endBlock, Math.ceil(this.#content.size / BLOCK_BYTES)));
    if (this.#isRunning || this.#next >= this.#wantEnd) return;
    this.#isRunning = true;
    this.#run().then(
      () => {
        this.#isRunning = false;
        this.#hooks.rested();
      },
      (thrown) => {
        this.#isRunning = false;
        this.close();
        this.#hooks.failed(this, thrown);
      },
    );
  }

  close(): void {
    this.#closed.abort(new SluiceError("cancelled", "nobody reads here any more"));
    this.#reader?.cancel().catch(() => {}); // The connection is given up either way.
    this.#reader = undefined;
    this.#filling = undefined;
  }

  async #run(): Promise<void> {
    while (this.#next < this.#wantEnd) {
      this.#closed.signal.throwIfAborted();
      try {
        this.#reader ??= await this.#connect();
        const { done, value } = await this.#reader.read();
        if (done) throw new SluiceError("url_unreachable", "the server ended the file before its end");
        this.#failures = 0;
        this.#take(value);
      } catch (thrown) {
        await this.#recover(thrown);
      }
    }
    if (this.#next * BLOCK_BYTES >= this.#content.size) this.close();
  }

  /** Cuts what came into blocks. */
  #take(bytes: Uint8Array): void {
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
    this.#reader?.cancel().catch(() => {}); // It is broken already.
    this.#reader = undefined;
    const waitMs = RETRY_MS[this.#failures++];
    if (waitMs === undefined || !mayRecover(thrown)) throw thrown;
    this.#client.log.debug("reading a file again where it broke", { reason: String(thrown) });
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
    await answer.body.cancel().catch(() => {}); // Nobody wants it.
    throw problem;
  }
}

/** Why an answer is not the rest of the file from `start` on (RFC 9110 14.4, 15.3.7). */
function rangeProblem(
  { status, headers }: { readonly status: number; readonly headers: Headers },
  { size }: WebContent,
  start: number,
): SluiceError | undefined {
  if (status === 206) {
    const told = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(headers.get("content-range")?.trim() ?? "");
    if (told && Number(told[1]) === start && (told[2] === "*" || Number(told[2]) === size)) return undefined;
    return told
      ? changed()
      : new SluiceError("url_unreachable", "the server sent another range than was asked for");
  }
  if (status === 416) return changed();
  if (status !== 200) return wrongStatus(status, "the media file");
  const length = Number(headers.get("content-length") ?? size);
  if (length !== size) return changed();
  if (start === 0) return undefined;
  const what = "the server sends this file from its beginning only (without ranges), or it has changed";
  return new SluiceError("unsupported_content", `${what}; such files can be played only as MPEG-TS`);
}

function changed(): SluiceError {
  return new SluiceError(
    "broken_media",
    "the file on the server has changed since it was opened; start it again",
  );
}
