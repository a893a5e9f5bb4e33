import { messageOf, SluiceError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { RateMeter } from "../../base/rate.ts";
import { after } from "../../base/time.ts";
import type { OpenOptions, Outbound, OutboundStream } from "../../outbound/outbound.ts";
import { eitherSignal } from "../../remux/either-signal.ts";
import type { Clock } from "../../runtime/contract.ts";
import type { WebContent } from "./web-content.ts";

/** What fetching from web servers needs. */
export interface WebParts {
  readonly clock: Clock;
  readonly outbound: Pick<Outbound, "open">;
  readonly log: Log;
}

/** Servers answer within a second or two; a player waits about ten. */
const HEAD_TIMEOUT_MS = 15_000;
/** A connection that brings nothing for so long is dead; it is then made anew. */
const IDLE_TIMEOUT_MS = 20_000;

type WebOptions = Pick<
  OpenOptions,
  "limitBytes" | "purpose" | "range" | "headers" | "decode" | "timeoutMs"
> & {
  readonly signal: AbortSignal;
  /** Whether this URL may lead home; as the content's own may unless said. */
  readonly allowPrivate?: boolean;
};

/** The way to the servers of one content: sends its credentials to its own origin, and counts what comes. */
export class WebClient {
  readonly clock: Clock;
  readonly log: Log;
  /** Everything received. */
  readonly received = new RateMeter();
  /** Fires with its reason when the content is given up. */
  readonly stopped = new AbortController();
  readonly #outbound: Pick<Outbound, "open">;
  readonly #content: WebContent;

  constructor({ clock, outbound, log }: WebParts, content: WebContent) {
    this.clock = clock;
    this.log = log;
    this.#outbound = outbound;
    this.#content = content;
  }

  /** Opens a URL of this content. Rejects with `SluiceError`. */
  async open(url: string, options: WebOptions): Promise<OutboundStream> {
    const { allowPrivate = this.#content.allowPrivate } = options;
    const either = eitherSignal(options.signal, this.stopped.signal);
    try {
      const answer = await this.#outbound.open(this.#withCredentials(url), {
        headTimeoutMs: HEAD_TIMEOUT_MS,
        idleTimeoutMs: IDLE_TIMEOUT_MS,
        ...options,
        allowPrivate,
        signal: either.signal,
      });
      return { ...answer, body: this.#counted(answer.body, either.release) };
    } catch (thrown) {
      either.release();
      throw thrown;
    }
  }

  /** Resolves after `ms`; rejects with the signal's reason. */
  pause(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const give = () => {
        cancel();
        reject(signal.reason);
      };
      const cancel = this.clock.at(after(this.clock.now(), ms), () => {
        signal.removeEventListener("abort", give);
        resolve();
      });
      signal.addEventListener("abort", give, { once: true });
    });
  }

  /** The same body, counted; `ended` is called once it is over, whichever way. */
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

/** Whether asking again may help: networks and busy servers recover, what is refused or gone does not. */
export function mayRecover(thrown: unknown): boolean {
  return (
    thrown instanceof SluiceError &&
    thrown.code === "url_unreachable" &&
    !/status 4(?!08|29)/.test(messageOf(thrown))
  );
}

/** An answer that is not what was asked for. */
export function wrongStatus(status: number, what: string): SluiceError {
  return new SluiceError(
    "url_unreachable",
    `the server answered the request for ${what} with status ${status}`,
  );
}
