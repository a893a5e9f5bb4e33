import type { Instant } from "../../base/time.ts";

/** An engine sends eight at once and six a minute; several may run at one address. */
const MAX_PER_HOST = 60;
/** All of a large network together. */
const MAX_IN_ALL = 1_000;
const WINDOW_MS = 60_000;

/** How many datagrams of a minute are looked at, by sender and in all: the others cost no more than their arrival. */
export class HeardLimit {
  readonly #perHost = new Map<string, number>();
  #count = 0;
  #since: Instant | undefined;

  /** Whether one more from `host` is looked at. */
  take(host: string, now: Instant): boolean {
    if (this.#since === undefined || now - this.#since >= WINDOW_MS) {
      this.#since = now;
      this.#count = 0;
      this.#perHost.clear();
    }
    const ofHost = this.#perHost.get(host) ?? 0;
    // The map has at most as many hosts as there are datagrams.
    if (this.#count >= MAX_IN_ALL || ofHost >= MAX_PER_HOST) return false;
    this.#count++;
    this.#perHost.set(host, ofHost + 1);
    return true;
  }
}
