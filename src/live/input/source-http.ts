import { messageOf, SluiceError } from "../../base/errors.ts";
import type { OutboundStream } from "../../outbound/request.ts";
import { mayRecover, wrongStatus } from "../../web-content/web-client.ts";
import type { LiveFeed, LiveInputFacts, WebFeedDependencies } from "./source-feed.ts";
import { HlsSourceFeed } from "./source-hls.ts";
import { FILE_PACE, PacedFeed, PIPE_PACE } from "./source-paced.ts";
import { ReopenedFeed } from "./source-reopened.ts";
import { StreamFeed } from "./source-stream.ts";

const HEAD_TIMEOUT_MS = 15_000;
/** A connection without data for this long is dead and is opened again. */
const STALL_MS = 10_000;

/** The packets of an endless HTTP response. It is requested again after each interruption, without limit; if it has
 * never worked, a permanent error fails at once. A response of known length is a file: it is paced, and it ends. */
export class HttpFeed extends ReopenedFeed {
  readonly #url: string;
  readonly #dependencies: WebFeedDependencies;
  #hasEnd = false;

  constructor(url: string, dependencies: WebFeedDependencies, facts: LiveInputFacts) {
    super(dependencies, facts);
    this.#url = url;
    this.#dependencies = dependencies;
  }

  protected began(failures: number): void {
    if (failures > 1) this.#dependencies.log.info("source is back", { attempts: failures });
  }

  protected ended(): string | undefined {
    return this.#hasEnd ? undefined : "the server ended the stream";
  }

  /** A source that has worked before may work again, whatever the error is. */
  protected failed(thrown: unknown, hasWorked: boolean): string {
    if (!(thrown instanceof SluiceError)) throw thrown;
    const isPermanent = thrown.code === "url_refused" || this.#hasEnd;
    if (isPermanent || (!hasWorked && !mayRecover(thrown))) throw thrown;
    return messageOf(thrown);
  }

  protected async open(signal: AbortSignal): Promise<LiveFeed> {
    const answer = await this.#dependencies.outbound.open(this.#url, {
      limitBytes: Number.POSITIVE_INFINITY,
      // The user chose the source; cameras and encoders are often on the local network.
      allowPrivate: true,
      headTimeoutMs: HEAD_TIMEOUT_MS,
      idleTimeoutMs: STALL_MS,
      decode: false,
      purpose: "source of the broadcast",
      signal,
    });
    if (answer.status !== 200) {
      answer.body.cancel().catch(() => {}); // The response is discarded anyway.
      throw wrongStatus(answer.status, "the source");
    }
    this.facts.starts++;
    return this.#feedOf(answer);
  }

  #feedOf(answer: OutboundStream): LiveFeed {
    if (/mpegurl/i.test(answer.headers.get("content-type") ?? "")) {
      answer.body.cancel().catch(() => {}); // The URL is requested again, as a manifest.
      this.#hasEnd = true;
      return new PacedFeed(
        new HlsSourceFeed(this.#url, this.#dependencies, this.facts),
        this.#dependencies.clock,
        PIPE_PACE,
      );
    }
    const feed = new StreamFeed(answer.body, this.facts);
    this.#hasEnd = answer.headers.has("content-length");
    return this.#hasEnd ? new PacedFeed(feed, this.#dependencies.clock, FILE_PACE) : feed;
  }
}
