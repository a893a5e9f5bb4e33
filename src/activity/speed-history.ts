import { after, type Instant } from "../base/time.ts";
import type { Engine } from "../engine/engine.ts";
import type { Clock } from "../runtime/contract.ts";
import type { SpeedSample } from "./activity-contract.ts";

/** Fine enough for a line of 720 points. */
const INTERVAL_MS = 5_000;
/** An hour. With the limit of open transfers, the history takes less than 2 MB. */
const MAX_SAMPLES = 720;

/** The speeds of the last hour. */
export class SpeedHistory {
  readonly #clock: Clock;
  readonly #engine: Pick<Engine, "figures">;
  readonly #samples: SpeedSample[] = [];
  #cancel: () => void;

  constructor(clock: Clock, engine: Pick<Engine, "figures">) {
    this.#clock = clock;
    this.#engine = engine;
    this.#cancel = this.#later(clock.now());
  }

  /** The samples, oldest first. */
  get samples(): readonly SpeedSample[] {
    return this.#samples;
  }

  /** Ends the sampling. */
  close(): void {
    this.#cancel();
  }

  #later(now: Instant): () => void {
    return this.#clock.at(after(now, INTERVAL_MS), () => {
      this.#sample();
      this.#cancel = this.#later(this.#clock.now());
    });
  }

  #sample(): void {
    const transfers = this.#engine.figures().transfers.map(({ infohash, figures }) => ({
      infohash,
      down: Math.round(figures.bytesPerSecondDown),
      up: Math.round(figures.bytesPerSecondUp),
    }));
    const sum = (of: "down" | "up") => transfers.reduce((total, each) => total + each[of], 0);
    this.#samples.push({ at: this.#clock.unixSeconds(), down: sum("down"), up: sum("up"), transfers });
    if (this.#samples.length > MAX_SAMPLES) this.#samples.shift();
  }
}
