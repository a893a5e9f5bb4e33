import { DecodeError, messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { after, type Instant } from "../base/time.ts";
import type { Dht } from "../net/contract.ts";
import type { Clock } from "../runtime/contract.ts";
import { viewBencode } from "../wire/bencode-view.ts";
import { SUCCESSOR_SALT } from "../wire/live/successor.ts";

/** What a search depends on. */
interface SuccessorSearchOptions {
  readonly dht: Pick<Dht, "getMutable">;
  readonly clock: Clock;
  readonly log: Log;
  /** The key of the stream. */
  readonly key: Uint8Array;
  /** The number of the newest known piece. */
  newestSeq(): number | undefined;
  /** Receives a record whose signature by the key is not verified yet. */
  found(record: Uint8Array): void;
}

/** Interval of the check whether the source is silent, and minimum interval between two searches. */
const CHECK_MS = 60_000;

/**
 * Looks for the successor record of a stream in the DHT: at the start, if its source has been silent for a minute, and if
 * two programs sign with its key. The source that publishes the record may be gone, so that no peer has it.
 */
export class SuccessorSearch {
  readonly #options: SuccessorSearchOptions;
  readonly #stopped = new AbortController();
  #cancel: () => void = () => {};
  #searchAt: Instant | undefined;
  #checkedSeq: number | undefined;

  constructor(options: SuccessorSearchOptions) {
    this.#options = options;
    this.suspect();
    this.#check();
  }

  /** Searches now, unless a search began less than a minute ago. */
  suspect(): void {
    const now = this.#options.clock.now();
    if (this.#searchAt !== undefined && now < this.#searchAt) return;
    this.#searchAt = after(now, CHECK_MS);
    void this.#search();
  }

  stop(): void {
    this.#stopped.abort();
    this.#cancel();
  }

  #check(): void {
    const { clock, newestSeq } = this.#options;
    this.#checkedSeq = newestSeq();
    this.#cancel = clock.at(after(clock.now(), CHECK_MS), () => {
      if (newestSeq() === this.#checkedSeq) this.suspect();
      this.#check();
    });
  }

  async #search(): Promise<void> {
    const { dht, key, found, log } = this.#options;
    const { signal } = this.#stopped;
    try {
      const item = await dht.getMutable(key, SUCCESSOR_SALT, signal);
      const record = item && viewBencode(item.value).bytes();
      if (record && !signal.aborted) found(record);
    } catch (error) {
      if (!signal.aborted && !(error instanceof DecodeError))
        log.debug("cannot look for a successor record", { error: messageOf(error) });
    }
  }
}
