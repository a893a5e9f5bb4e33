import type { Log } from "../../base/log.ts";
import { after, type Instant, instant } from "../../base/time.ts";
import { MAX_MANIFESTS } from "../../wire/live-limits.ts";

interface Place {
  readonly url: string;
  failures: number;
  restsUntil: Instant;
  /** Its trouble was told, and it has not worked since. */
  isTold: boolean;
}

/** Waits after what a server could not answer: 2 s, then twice as long each time. */
const FIRST_REST_MS = 2_000;
/** After what will hardly change. */
const LONG_REST_MS = 600_000;

/** The copies of a stream on the web, in the order of its transport file: which one is of use now. */
export class WebPlaces {
  readonly #log: Log;
  readonly #places: Place[] = [];
  #used: Place | undefined;

  constructor(urls: readonly string[], log: Log) {
    this.#log = log;
    this.learn(urls);
  }

  /** More copies. */
  learn(urls: readonly string[]): void {
    for (const url of urls)
      if (this.#places.length < MAX_MANIFESTS && this.#places.every((known) => known.url !== url))
        this.#places.push({ url, failures: 0, restsUntil: instant(0), isTold: false });
  }

  get isEmpty(): boolean {
    return this.#places.length === 0;
  }

  /** The one to ask: as long as it works the same; undefined while all rest. */
  use(now: Instant): string | undefined {
    if (!this.#used || this.#used.restsUntil > now)
      this.#used = this.#places.find(({ restsUntil }) => restsUntil <= now);
    return this.#used?.url;
  }

  /** Where it is, without what may be a secret in it. */
  get shown(): string {
    return this.#used ? new URL(this.#used.url).host : "";
  }

  /** It brought what was wanted. */
  worked(): void {
    if (!this.#used) return;
    this.#used.failures = 0;
    this.#used.isTold = false;
  }

  /** It could not be asked, or not understood. */
  failed(reason: string, now: Instant): void {
    if (this.#used) this.#rest(reason, FIRST_REST_MS * 2 ** Math.min(16, this.#used.failures++), now);
  }

  /** It is no copy of this stream. */
  useless(reason: string, now: Instant): void {
    this.#rest(reason, LONG_REST_MS, now);
  }

  #rest(reason: string, ms: number, now: Instant): void {
    const place = this.#used;
    if (!place) return;
    place.restsUntil = after(now, Math.min(ms, LONG_REST_MS));
    if (!place.isTold)
      this.#log.warn("the stream's copy on the web is of no use for now", { from: this.shown, reason });
    place.isTold = true;
  }
}
