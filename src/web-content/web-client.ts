import { linkedAbort } from "../async/abort.ts";
import { sleep } from "../async/sleep.ts";
import { messageOf, SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { RateMeter } from "../base/rate.ts";
import type { Outbound } from "../outbound/outbound.ts";
import type { OpenOptions, OutboundStream } from "../outbound/request.ts";
import type { Clock } from "../runtime/contract.ts";
import type { WebContent } from "../transfer/contract.ts";

/** Dependencies of a `WebClient`. */
export interface WebClientDependencies {
  readonly clock: Clock;
  readonly outbound: Pick<Outbound, "open">;
  readonly log: Log;
}

/** Limit of the time to the response head. Servers usually answer within two seconds; a player waits about ten. */
const HEAD_TIMEOUT_MS = 15_000;
/** A connection without data for this time is dead; the caller opens another. */
const IDLE_TIMEOUT_MS = 20_000;

type WebOptions = Pick<
  OpenOptions,
  "limitBytes" | "purpose" | "range" | "headers" | "decode" | "timeoutMs"
> & {
  readonly signal: AbortSignal;
  /** Whether this URL may lead to private addresses. Default: as for the content. */
  readonly allowPrivate?: boolean;
};

/** The HTTP client of one content: sends its credentials to its own origin only, and measures the received bytes. */
export class WebClient {
  readonly clock: Clock;
  readonly log: Log;
  /** All received body bytes. */
  readonly received = new RateMeter();
  /** Aborted, with the reason, when the content is closed. Ends every request. */
  readonly stopped = new AbortController();
  readonly #outbound: Pick<Outbound, "open">;
  readonly #content: WebContent;

  constructor({ clock, outbound, log }: WebClientDependencies, content: WebContent) {
    this.clock = clock;
    this.log = log;
    this.#outbound = outbound;
    this.#content = content;
  }

  /** Requests a URL of this content. Rejects with `SluiceError`. */
  async open(url: string, options: WebOptions): Promise<OutboundStream> {
    const { allowPrivate = this.#content.allowPrivate } = options;
    const { userAgent, originHeaders } = splitHeaders(this.#content.headers);
    const isOwn = new URL(url).origin === new URL(this.#content.url).origin;
    const linked = linkedAbort(options.signal, this.stopped.signal);
    try {
      const answer = await this.#outbound.open(this.#withCredentials(url), {
        headTimeoutMs: HEAD_TIMEOUT_MS,
        idleTimeoutMs: IDLE_TIMEOUT_MS,
        ...options,
        headers: { ...options.headers, ...userAgent },
        ...(isOwn && { originHeaders }),
        allowPrivate,
        signal: linked.signal,
      });
      return { ...answer, body: this.#counted(answer.body, linked.release) };
    } catch (thrown) {
      linked.release();
      throw thrown;
    }
  }

  /** Resolves after `ms` milliseconds; rejects with the reason of `signal`. */
  async pause(ms: number, signal: AbortSignal): Promise<void> {
    await sleep(this.clock, ms, signal);
    signal.throwIfAborted();
  }

  /** Returns the same body and counts its bytes. `ended` is called when it ends, fails or is cancelled. */
  #counted(body: ReadableStream<Uint8Array>, ended: () => void): ReadableStream<Uint8Array> {
    const reader = body.getReader();
    reader.closed.then(ended, ended);
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          const { done, value } = await reader.read();
          if (done) return controller.close();
          this.received.add(value.length, this.clock.now());
          controller.enqueue(value);
        },
        cancel: (reason) => reader.cancel(reason),
      },
      { highWaterMark: 0 },
    );
  }

  #withCredentials(url: string): string {
    const own = new URL(this.#content.url);
    const target = new URL(url);
    if (own.origin !== target.origin || target.username !== "" || target.password !== "") return url;
    target.username = own.username;
    target.password = own.password;
    return target.href;
  }
}

/** Splits the headers that a playlist sets for content: every server of the content receives `userAgent`, the origin of its URL also
 * the others. */
export function splitHeaders({ "user-agent": agent, ...originHeaders }: WebContent["headers"] = {}) {
  return { userAgent: agent === undefined ? {} : { "user-agent": agent }, originHeaders };
}

/** Returns true if a retry may succeed: network errors, 408, 429 and 5xx, but no other status 4xx. */
export function mayRecover(thrown: unknown): boolean {
  return (
    thrown instanceof SluiceError &&
    thrown.code === "url_unreachable" &&
    !/status 4(?!08|29)/.test(messageOf(thrown))
  );
}

/** Builds the error for an unexpected status. `what` names the requested resource. */
export function wrongStatus(status: number, what: string): SluiceError {
  return new SluiceError(
    "url_unreachable",
    `the server answered the request for ${what} with status ${status}`,
  );
}
