import type { Infohash } from "../base/ids.ts";
import { after } from "../base/time.ts";
import type { Clock } from "../runtime/contract.ts";
import { titleOf } from "../storage/known-file.ts";
import type { Transfers } from "../transfer/contract.ts";

interface Found {
  readonly name: string;
  readonly infohash: Infohash;
}

/** Reading thousands of names takes seconds, once. A search waits this long, then uses the names read so far. */
const FIRST_SEARCH_MS = 2_000;
/** Further words of a query are ignored. */
const MAX_WORDS = 16;
const MAX_QUERY_LENGTH = 500;

/** The names of the stored transport files, read at the first search. */
export class KeptNames {
  readonly #clock: Clock;
  readonly #transfers: Pick<Transfers, "keptInfohashes" | "knownTransportFile">;
  /** Bounded by the number of stored files. `plain` is the name without case and accents. */
  readonly #names = new Map<Infohash, { readonly name: string; readonly plain: string }>();
  #reading: Promise<void> | undefined;

  constructor(clock: Clock, transfers: Pick<Transfers, "keptInfohashes" | "knownTransportFile">) {
    this.#clock = clock;
    this.#transfers = transfers;
  }

  /** Returns up to `limit` files whose name contains every word of `text`, ignoring case and accents, newest first. */
  async search(text: string, limit: number): Promise<readonly Found[]> {
    const words = plain(text.slice(0, MAX_QUERY_LENGTH)).split(/\s+/).filter(Boolean).slice(0, MAX_WORDS);
    await this.#update();
    const found: Found[] = [];
    for (const infohash of this.#transfers.keptInfohashes()) {
      if (found.length >= limit) break;
      const known = this.#names.get(infohash);
      if (known && words.every((word) => known.plain.includes(word)))
        found.push({ name: known.name, infohash });
    }
    return found;
  }

  /** Waits until all names are read, at most `FIRST_SEARCH_MS`; reading continues in the background. */
  async #update(): Promise<void> {
    this.#reading ??= this.#readAll().finally(() => {
      this.#reading = undefined;
    });
    let cancel = () => {};
    const late = new Promise<void>((resolve) => {
      cancel = this.#clock.at(after(this.#clock.now(), FIRST_SEARCH_MS), resolve);
    });
    await Promise.race([this.#reading, late]).finally(() => cancel());
  }

  async #readAll(): Promise<void> {
    const kept = new Set(this.#transfers.keptInfohashes());
    for (const infohash of this.#names.keys()) if (!kept.has(infohash)) this.#names.delete(infohash);
    for (const infohash of kept) {
      if (this.#names.has(infohash)) continue;
      const known = await this.#transfers.knownTransportFile(infohash);
      if (!known) continue;
      const name = titleOf(known);
      this.#names.set(infohash, { name, plain: plain(name) });
    }
  }
}

function plain(text: string): string {
  return text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
}
