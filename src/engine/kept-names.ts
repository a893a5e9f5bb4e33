import type { Infohash } from "../base/ids.ts";
import { after } from "../base/time.ts";
import type { Clock } from "../runtime/contract.ts";
import type { Transfers } from "./contract.ts";
import { titleOf } from "./known-file.ts";

/** What was found by its name. */
interface Found {
  readonly name: string;
  readonly infohash: Infohash;
}

/** Reading the names of thousands of files takes seconds, once: nobody waits for all of it. */
const FIRST_SEARCH_MS = 2_000;
/** Words of a query that count. */
const MAX_WORDS = 16;
const MAX_QUERY_LENGTH = 500;

/** The names of the kept transport files, read when somebody first searches them. */
export class KeptNames {
  readonly #clock: Clock;
  readonly #transfers: Pick<Transfers, "keptInfohashes" | "knownTransportFile">;
  /** Only of content that is still kept, so there are as many as files; `plain` is what is searched. */
  readonly #names = new Map<Infohash, { readonly name: string; readonly plain: string }>();
  #reading: Promise<void> | undefined;

  constructor(clock: Clock, transfers: Pick<Transfers, "keptInfohashes" | "knownTransportFile">) {
    this.#clock = clock;
    this.#transfers = transfers;
  }

  /** Those whose name has all words of `text`, whatever their case and accents; the latest first, `limit` at most. */
  async search(text: string, limit: number): Promise<readonly Found[]> {
    const words = plain(text.slice(0, MAX_QUERY_LENGTH)).split(/\s+/).filter(Boolean).slice(0, MAX_WORDS);
    await this.#upToDate();
    const found: Found[] = [];
    for (const infohash of this.#transfers.keptInfohashes()) {
      if (found.length >= limit) break;
      const known = this.#names.get(infohash);
      if (known && words.every((word) => known.plain.includes(word)))
        found.push({ name: known.name, infohash });
    }
    return found;
  }

  /** Waits until all names are read, or long enough; the reading goes on. */
  async #upToDate(): Promise<void> {
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
