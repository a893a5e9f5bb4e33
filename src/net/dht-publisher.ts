import type { Log } from "../base/log.ts";
import { after } from "../base/time.ts";
import type { Clock } from "../runtime/contract.ts";
import type { DhtItem } from "../wire/dht/krpc.ts";
import type { DhtDriver } from "./dht-driver.ts";

/** Nodes drop items after two hours; BEP 44 recommends publishing them again each hour. */
const REPUBLISH_MS = 60 * 60_000;
/** Interval at which a changed mutable item is detected, and a failed put is repeated. */
const ROUND_MS = 60_000;

export interface DhtPublisherDependencies {
  readonly driver: Pick<DhtDriver, "begin">;
  readonly clock: Clock;
  readonly log: Log;
}

/** Puts items into the DHT and publishes them again before nodes drop them (BEP 44). */
export class DhtPublisher {
  readonly #dependencies: DhtPublisherDependencies;

  constructor(dependencies: DhtPublisherDependencies) {
    this.#dependencies = dependencies;
  }

  /** Publishes the result of `current` until the returned function is called. A changed mutable item is put within a minute. */
  publish(current: () => DhtItem): () => void {
    const { clock } = this.#dependencies;
    let isOver = false;
    let stopPut = () => {};
    let cancelTimer = () => {};
    let isStored = false;
    let putAt = clock.now();
    let sequence: number | undefined;
    const round = () => {
      if (isOver) return;
      const item = current();
      const isDue = !isStored || clock.now() - putAt >= REPUBLISH_MS || item.signed?.sequence !== sequence;
      const scheduleNext = () => {
        if (!isOver) cancelTimer = clock.at(after(clock.now(), ROUND_MS), round);
      };
      if (!isDue) {
        scheduleNext();
        return;
      }
      putAt = clock.now();
      sequence = item.signed?.sequence;
      stopPut = this.#put(item, (stored) => {
        isStored = stored > 0;
        scheduleNext();
      });
    };
    round();
    return () => {
      isOver = true;
      stopPut();
      cancelTimer();
    };
  }

  #put(item: DhtItem, done: (stored: number) => void): () => void {
    const { driver, log } = this.#dependencies;
    return driver.begin(
      { kind: "put", item },
      {
        item(other) {
          // Another engine uses the same key, or the clock was set back.
          log.warn("the DHT holds a newer item for our key", {
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
