import type { Log } from "../../../base/log.ts";
import { after, type Instant } from "../../../base/time.ts";

/** After a first failure the proxy is left alone so long, then twice as long each time. */
const FIRST_WAIT_MS = 1_000;
/** A proxy that comes back is noticed within so long. */
const LONGEST_WAIT_MS = 30_000;

/**
 * Whether the proxy can be asked now. While it fails, one wish at a time tries it, at growing distances; all others fail at
 * once, with the reason that the last one heard.
 */
export class ProxyHealth {
  readonly #log: Log;
  readonly #proxy: string;
  #waitMs = FIRST_WAIT_MS;
  /** Undefined: it works, as far as is known. */
  #nextTry: Instant | undefined;
  #isTrying = false;
  #reason = "";

  constructor(log: Log, proxy: string) {
    this.#log = log;
    this.#proxy = proxy;
  }

  /** Why it carried nothing the last time that it was asked; undefined where it did. */
  get lastProblem(): string | undefined {
    return this.#nextTry === undefined ? undefined : this.#reason;
  }

  /** Why it must not be asked now; undefined where it may. The caller tells how it went. */
  problem(now: Instant): string | undefined {
    if (this.#nextTry === undefined) return undefined;
    if (now < this.#nextTry) return this.#reason;
    this.#isTrying = true;
    this.#nextTry = after(now, this.#waitMs);
    return undefined;
  }

  /** The proxy was not there, is none, or does not take us. */
  failed(reason: string, now: Instant): void {
    if (reason !== this.#reason)
      this.#log.warn("the proxy does not carry us: nothing leaves", { proxy: this.#proxy, reason });
    this.#reason = reason;
    if (this.#nextTry === undefined) this.#waitMs = FIRST_WAIT_MS;
    else if (this.#isTrying) this.#waitMs = Math.min(LONGEST_WAIT_MS, 2 * this.#waitMs);
    // Else it is one of many that were on their way when the first one failed.
    else return;
    this.#isTrying = false;
    this.#nextTry = after(now, this.#waitMs);
  }

  /** The proxy did its part. */
  worked(): void {
    if (this.#nextTry !== undefined) this.#log.info("the proxy carries us again", { proxy: this.#proxy });
    this.#nextTry = undefined;
    this.#isTrying = false;
    this.#reason = "";
  }
}
