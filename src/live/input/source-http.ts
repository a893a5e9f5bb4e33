import { messageOf, SluiceError } from "../../base/errors.ts";
import type { OutboundStream } from "../../outbound/request.ts";
import { mayRecover, wrongStatus } from "../../web-content/web-client.ts";
import { type LiveFeed, type LiveInputFacts, type WebFeedDependencies, waitForRetry } from "./source-feed.ts";
import { HlsSourceFeed } from "./source-hls.ts";
import { FILE_PACE, PacedFeed, PIPE_PACE } from "./source-paced.ts";
import { StreamFeed } from "./source-stream.ts";

const HEAD_TIMEOUT_MS = 15_000;
/** A connection without data for this long is dead and is opened again. */
const STALL_MS = 10_000;

/** The packets of an endless HTTP response. It is requested again after each interruption, without limit; if it has
 * never worked, a permanent error fails at once. A response of known length is a file: it is paced, and it ends. */
export class HttpFeed implements LiveFeed {
  readonly #url: string;
  readonly #dependencies: WebFeedDependencies;
  readonly #facts: LiveInputFacts;
  readonly #closed = new AbortController();
  #feed: LiveFeed | undefined;
  #hasEnd = false;
  #hasWorked = false;
  /** Consecutive attempts without data. */
  #failures = 0;

  constructor(url: string, dependencies: WebFeedDependencies, facts: LiveInputFacts) {
    this.#url = url;
    this.#dependencies = dependencies;
    this.#facts = facts;
  }

  async next(): Promise<Uint8Array | undefined> {
    const { signal } = this.#closed;
    while (!signal.aborted) {
      try {
        this.#feed ??= await this.#open();
        const packets = await this.#feed.next();
        if (packets) {
          if (this.#failures > 1) this.#dependencies.log.info("source is back", { attempts: this.#failures });
          this.#hasWorked = true;
          this.#failures = 0;
          return packets;
        }
        if (this.#hasEnd) return undefined;
        this.#facts.problem = "the server ended the stream";
      } catch (thrown) {
        if (signal.aborted) return undefined;
        this.#noteFailure(thrown);
      }
      this.#drop();
      await waitForRetry(this.#dependencies, this.#facts.problem, ++this.#failures, signal);
    }
    return undefined;
  }

  close(): void {
    this.#closed.abort(new SluiceError("cancelled", "the broadcast ended"));
    this.#drop();
  }

  /** Throws if a retry cannot help. A source that has worked before may work again, whatever the error is. */
  #noteFailure(thrown: unknown): void {
    if (!(thrown instanceof SluiceError)) throw thrown;
    const isPermanent = thrown.code === "url_refused" || this.#hasEnd;
    if (isPermanent || (!this.#hasWorked && !mayRecover(thrown))) throw thrown;
    this.#facts.problem = messageOf(thrown);
  }

  async #open(): Promise<LiveFeed> {
    const answer = await this.#dependencies.outbound.open(this.#url, {
      limitBytes: Number.POSITIVE_INFINITY,
      // The user chose the source; cameras and encoders are often on the local network.
      allowPrivate: true,
      headTimeoutMs: HEAD_TIMEOUT_MS,
      idleTimeoutMs: STALL_MS,
      decode: false,
      purpose: "source of the broadcast",
      signal: this.#closed.signal,
    });
    if (answer.status !== 200) {
      answer.body.cancel().catch(() => {}); // The response is discarded anyway.
      throw wrongStatus(answer.status, "the source");
    }
    this.#facts.starts++;
    return this.#feedOf(answer);
  }

  #feedOf(answer: OutboundStream): LiveFeed {
    if (/mpegurl/i.test(answer.headers.get("content-type") ?? "")) {
      answer.body.cancel().catch(() => {}); // The URL is requested again, as a manifest.
      this.#hasEnd = true;
      return new PacedFeed(
        new HlsSourceFeed(this.#url, this.#dependencies, this.#facts),
        this.#dependencies.clock,
        PIPE_PACE,
      );
    }
    const feed = new StreamFeed(answer.body, this.#facts);
    this.#hasEnd = answer.headers.has("content-length");
    return this.#hasEnd ? new PacedFeed(feed, this.#dependencies.clock, FILE_PACE) : feed;
  }

  #drop(): void {
    this.#feed?.close();
    this.#feed = undefined;
  }
}
