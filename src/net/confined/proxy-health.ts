import type { Log } from "../../base/log.ts";
import { after, type Instant } from "../../base/time.ts";

/** Backoff after the first failure; it doubles with each further one. */
const FIRST_WAIT_MS = 1_000;
/** Longest backoff, and so the time to detect that the proxy works again. */
const LONGEST_WAIT_MS = 30_000;

/**
 * Circuit breaker for the proxy. While it fails, one request at a time tries it, at growing intervals; all others fail
 * immediately with the last error.
 */
export class ProxyHealth {
  readonly #log: Log;
  readonly #proxy: string;
  #waitMs = FIRST_WAIT_MS;
  /** Undefined while the proxy works. */
  #nextTry: Instant | undefined;
  #isTrying = false;
  #reason = "";

  constructor(log: Log, proxy: string) {
    this.#log = log;
    this.#proxy = proxy;
  }

  /** The error of the last attempt; undefined if it succeeded. */
  get lastProblem(): string | undefined {
    return this.#nextTry === undefined ? undefined : this.#reason;
  }

  /** Returns the reason why the proxy must not be tried now; undefined if it may. The caller then reports the result. */
  problem(now: Instant): string | undefined {
    if (this.#nextTry === undefined) return undefined;
    if (now < this.#nextTry) return this.#reason;
    this.#isTrying = true;
    this.#nextTry = after(now, this.#waitMs);
    return undefined;
  }

  /** Reports that the proxy was unreachable, is no proxy, or rejected the credentials. */
  failed(reason: string, now: Instant): void {
    if (reason !== this.#reason)
      this.#log.warn("the proxy does not work; peer traffic is blocked", { proxy: this.#proxy, reason });
    this.#reason = reason;
    if (this.#nextTry === undefined) this.#waitMs = FIRST_WAIT_MS;
    else if (this.#isTrying) this.#waitMs = Math.min(LONGEST_WAIT_MS, 2 * this.#waitMs);
    // Otherwise the request started before the first failure.
    else return;
    this.#isTrying = false;
    this.#nextTry = after(now, this.#waitMs);
  }

  /** Reports success. */
  worked(): void {
    if (this.#nextTry !== undefined) this.#log.info("the proxy works again", { proxy: this.#proxy });
    this.#nextTry = undefined;
    this.#isTrying = false;
    this.#reason = "";
  }
}
