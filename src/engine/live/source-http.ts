import { messageOf, SluiceError } from "../../base/errors.ts";
import type { OutboundStream } from "../../outbound/outbound.ts";
import { mayRecover, wrongStatus } from "../http/web-client.ts";
import {
  type LiveFeed,
  type LiveInputFacts,
  pauseFor,
  sayBrokenOff,
  type WebFeedParts,
} from "./source-feed.ts";
import { HlsSourceFeed } from "./source-hls.ts";
import { FILE_PACE, PacedFeed, PIPE_PACE } from "./source-paced.ts";
import { StreamFeed } from "./source-stream.ts";

const HEAD_TIMEOUT_MS = 15_000;
/** A connection that brings nothing for so long is dead, and is made anew. */
const STALL_MS = 10_000;
/** Waits between attempts: 0.5 s, then twice as long each time, up to ten. */
const FIRST_WAIT_MS = 500;
const MAX_WAIT_MS = 10_000;

/**
 * The packets of an HTTP answer without end, asked for again whenever it breaks off, for as long as it takes. What has never worked
 * fails at once where asking again cannot help. An answer of known length is a file: it is paced, and has an end.
 */
export class HttpFeed implements LiveFeed {
  readonly #url: string;
  readonly #parts: WebFeedParts;
  readonly #facts: LiveInputFacts;
  readonly #closed = new AbortController();
  #feed: LiveFeed | undefined;
  #hasEnd = false;
  #hasWorked = false;
  /** Attempts that brought nothing, one after another. */
  #failures = 0;

  constructor(url: string, parts: WebFeedParts, facts: LiveInputFacts) {
    this.#url = url;
    this.#parts = parts;
    this.#facts = facts;
  }

  async next(): Promise<Uint8Array | undefined> {
    const { signal } = this.#closed;
    while (!signal.aborted) {
      try {
        this.#feed ??= await this.#opened();
        const packets = await this.#feed.next();
        if (packets) {
          if (this.#failures > 1) this.#parts.log.info("the source is back", { attempts: this.#failures });
          this.#hasWorked = true;
          this.#failures = 0;
          return packets;
        }
        if (this.#hasEnd) return undefined;
        this.#facts.problem = "the server ended the stream";
      } catch (thrown) {
        if (signal.aborted) return undefined;
        this.#fail(thrown);
      }
      this.#drop();
      const waitMs = Math.min(MAX_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.min(10, this.#failures++));
      sayBrokenOff(this.#parts.log, this.#facts.problem, this.#failures, waitMs);
      await pauseFor(this.#parts.clock, waitMs, signal);
    }
    return undefined;
  }

  close(): void {
    this.#closed.abort(new SluiceError("cancelled", "the broadcast has ended"));
    this.#drop();
  }

  /** Throws where asking again cannot help: what has worked before may work again, whatever is said meanwhile. */
  #fail(thrown: unknown): void {
    if (!(thrown instanceof SluiceError)) throw thrown;
    const isHopeless = thrown.code === "url_refused" || this.#hasEnd;
    if (isHopeless || (!this.#hasWorked && !mayRecover(thrown))) throw thrown;
    this.#facts.problem = messageOf(thrown);
  }

  async #opened(): Promise<LiveFeed> {
    const answer = await this.#parts.outbound.open(this.#url, {
      limitBytes: Number.POSITIVE_INFINITY,
      // The user who broadcasts says where from; cameras and encoders are at home.
      allowPrivate: true,
      headTimeoutMs: HEAD_TIMEOUT_MS,
      idleTimeoutMs: STALL_MS,
      decode: false,
      purpose: "source of the broadcast",
      signal: this.#closed.signal,
    });
    if (answer.status !== 200) {
      answer.body.cancel().catch(() => {}); // It is given up either way.
      throw wrongStatus(answer.status, "the source");
    }
    this.#facts.beginnings++;
    return this.#feedOf(answer);
  }

  #feedOf(answer: OutboundStream): LiveFeed {
    if (/mpegurl/i.test(answer.headers.get("content-type") ?? "")) {
      answer.body.cancel().catch(() => {}); // It is asked for again, as a manifest.
      this.#hasEnd = true;
      return new PacedFeed(
        new HlsSourceFeed(this.#url, this.#parts, this.#facts),
        this.#parts.clock,
        PIPE_PACE,
      );
    }
    const feed = new StreamFeed(answer.body, this.#facts);
    this.#hasEnd = answer.headers.has("content-length");
    return this.#hasEnd ? new PacedFeed(feed, this.#parts.clock, FILE_PACE) : feed;
  }

  #drop(): void {
    this.#feed?.close();
    this.#feed = undefined;
  }
}
