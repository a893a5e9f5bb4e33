import { SluiceError } from "../../base/errors.ts";
import { type LiveFeed, type LiveInputFacts, type WebFeedDependencies, waitForRetry } from "./source-feed.ts";

/** The packets of a connection that is opened again after each interruption, without limit. */
export abstract class ReopenedFeed implements LiveFeed {
  protected readonly facts: LiveInputFacts;
  readonly #dependencies: Pick<WebFeedDependencies, "clock" | "log">;
  readonly #closed = new AbortController();
  #feed: LiveFeed | undefined;
  #hasWorked = false;
  /** Consecutive attempts without data. */
  #failures = 0;

  constructor(dependencies: Pick<WebFeedDependencies, "clock" | "log">, facts: LiveInputFacts) {
    this.#dependencies = dependencies;
    this.facts = facts;
  }

  protected abstract open(signal: AbortSignal): Promise<LiveFeed>;

  /** The first packets of a connection arrived, after `failures` attempts without data. */
  protected abstract began(failures: number): void;

  /** Returns the problem to show after the other side ended the connection; undefined if the source is over. */
  protected abstract ended(): string | undefined;

  /** Returns the problem to show after an error. Throws if another attempt cannot help; `hasWorked` if packets have arrived before. */
  protected abstract failed(thrown: unknown, hasWorked: boolean): string;

  async next(): Promise<Uint8Array | undefined> {
    const { signal } = this.#closed;
    while (!signal.aborted) {
      let isNew = false;
      try {
        if (!this.#feed) {
          this.#feed = await this.open(signal);
          isNew = true;
        }
        const packets = await this.#feed.next();
        if (packets) {
          if (isNew) this.#begin();
          return packets;
        }
        const problem = this.ended();
        if (problem === undefined) return undefined;
        this.facts.problem = problem;
      } catch (thrown) {
        if (signal.aborted) return undefined;
        this.facts.problem = this.failed(thrown, this.#hasWorked);
      }
      this.#drop();
      await waitForRetry(this.#dependencies, this.facts.problem, ++this.#failures, signal);
    }
    return undefined;
  }

  close(): void {
    this.#closed.abort(new SluiceError("cancelled", "the broadcast ended"));
    this.#drop();
  }

  #begin(): void {
    this.began(this.#failures);
    this.#hasWorked = true;
    this.#failures = 0;
  }

  #drop(): void {
    this.#feed?.close();
    this.#feed = undefined;
  }
}
