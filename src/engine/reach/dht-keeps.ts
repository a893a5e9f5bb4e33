import type { Log } from "../../base/log.ts";
import { after } from "../../base/time.ts";
import type { Clock } from "../../runtime/contract.ts";
import type { DhtItem } from "../../wire/krpc.ts";
import type { DhtDriver } from "./dht-driver.ts";

/** Nodes forget items after two hours (BEP 44 advises to put them anew each hour). */
const ANEW_MS = 60 * 60_000;
/** How often it is looked whether an item is another by now; and how soon one that nobody took is put again. */
const ROUND_MS = 60_000;

/** What keeping takes. */
export interface DhtKeepsParts {
  readonly driver: Pick<DhtDriver, "begin">;
  readonly clock: Clock;
  readonly log: Log;
}

/** Puts items into the DHT, and puts them anew before they are forgotten (BEP 44). */
export class DhtKeeps {
  readonly #parts: DhtKeepsParts;

  constructor(parts: DhtKeepsParts) {
    this.#parts = parts;
  }

  /** Keeps what `current` gives there until the returned function is called. A mutable item that has changed is put within a minute. */
  keep(current: () => DhtItem): () => void {
    const { clock } = this.#parts;
    let isOver = false;
    let stopPutting = () => {};
    let stopWaiting = () => {};
    let isStored = false;
    let putAt = clock.now();
    let sequence: number | undefined;
    const round = () => {
      if (isOver) return;
      const item = current();
      const isDue = !isStored || clock.now() - putAt >= ANEW_MS || item.signed?.sequence !== sequence;
      const rest = () => {
        if (!isOver) stopWaiting = clock.at(after(clock.now(), ROUND_MS), round);
      };
      if (!isDue) {
        rest();
        return;
      }
      putAt = clock.now();
      sequence = item.signed?.sequence;
      stopPutting = this.#put(item, (stored) => {
        isStored = stored > 0;
        rest();
      });
    };
    round();
    return () => {
      isOver = true;
      stopPutting();
      stopWaiting();
    };
  }

  #put(item: DhtItem, done: (stored: number) => void): () => void {
    const { driver, log } = this.#parts;
    return driver.begin(
      { kind: "put", item },
      {
        item(other) {
          // Another engine broadcasts with the same key, or a clock was set back.
          log.warn("a newer item of ours is in the DHT", {
            ours: item.signed?.sequence,
            theirs: other.signed?.sequence,
          });
        },
        done({ stored, queries }) {
          log.debug("put an item", { stored, queries, bytes: item.value.length });
          done(stored);
        },
      },
    );
  }
}
