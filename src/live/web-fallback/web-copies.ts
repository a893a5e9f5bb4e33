import type { Log } from "../../base/log.ts";
import { after, type Instant, instant } from "../../base/time.ts";
import { MAX_MANIFESTS } from "../../wire/live/limits.ts";

interface WebCopy {
  readonly url: string;
  failures: number;
  pausedUntil: Instant;
  /** The current failure has been logged. */
  isLogged: boolean;
}

/** Pause after a failed request: 2 s, then doubled each time. */
const FIRST_PAUSE_MS = 2_000;
/** Pause after a failure that is probably permanent. */
const LONG_PAUSE_MS = 600_000;

/** The web copies of a stream, in the order of its transport file. Selects the one to select. */
export class WebCopies {
  readonly #log: Log;
  readonly #copies: WebCopy[] = [];
  #selected: WebCopy | undefined;

  constructor(urls: readonly string[], log: Log) {
    this.#log = log;
    this.add(urls);
  }

  /** Adds copies. */
  add(urls: readonly string[]): void {
    for (const url of urls)
      if (this.#copies.length < MAX_MANIFESTS && this.#copies.every((known) => known.url !== url))
        this.#copies.push({ url, failures: 0, pausedUntil: instant(0), isLogged: false });
  }

  get isEmpty(): boolean {
    return this.#copies.length === 0;
  }

  /** Selects the copy to request: the same one while it works; undefined while all of them pause. */
  select(now: Instant): string | undefined {
    if (!this.#selected || this.#selected.pausedUntil > now)
      this.#selected = this.#copies.find(({ pausedUntil }) => pausedUntil <= now);
    return this.#selected?.url;
  }

  /** The host of the selected copy; the rest of the URL may contain a secret. */
  get host(): string {
    return this.#selected ? new URL(this.#selected.url).host : "";
  }

  /** The selected copy had wanted pieces. */
  worked(): void {
    if (!this.#selected) return;
    this.#selected.failures = 0;
    this.#selected.isLogged = false;
  }

  /** The request failed, or the response could not be used. */
  failed(reason: string, now: Instant): void {
    if (this.#selected)
      this.#pause(reason, FIRST_PAUSE_MS * 2 ** Math.min(16, this.#selected.failures++), now);
  }

  /** The selected copy is not a copy of this stream. */
  useless(reason: string, now: Instant): void {
    this.#pause(reason, LONG_PAUSE_MS, now);
  }

  #pause(reason: string, ms: number, now: Instant): void {
    const copy = this.#selected;
    if (!copy) return;
    copy.pausedUntil = after(now, Math.min(ms, LONG_PAUSE_MS));
    if (!copy.isLogged)
      this.#log.warn("web copy of the stream cannot be used for now", { from: this.host, reason });
    copy.isLogged = true;
  }
}
