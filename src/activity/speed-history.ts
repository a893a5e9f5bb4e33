import { after, type Instant, type UnixSeconds } from "../base/time.ts";
import type { Engine } from "../engine/engine.ts";
import type { Clock } from "../runtime/contract.ts";
import type { SpeedSample } from "./activity-contract.ts";

/** Fine enough for a line of 720 points. */
const INTERVAL_MS = 5_000;
/** An hour. With the limit of open transfers, the history takes less than 2 MB. */
const MAX_SAMPLES = 720;

/**
 * The speeds of the last hour. Without open transfers there is no timer, so that an idle engine does not wake; the samples of that
 * time are zero and are added when the history is read or a transfer opens.
 */
export class SpeedHistory {
  readonly #clock: Clock;
  readonly #engine: Pick<Engine, "figures">;
  readonly #samples: SpeedSample[] = [];
  readonly #stopListening: () => void;
  /** When the next sample is due. */
  #dueAt: Instant;
  #cancel: (() => void) | undefined;

  constructor(clock: Clock, engine: Pick<Engine, "figures" | "onTransferOpened">) {
    this.#clock = clock;
    this.#engine = engine;
    this.#dueAt = after(clock.now(), INTERVAL_MS);
    this.#stopListening = engine.onTransferOpened(() => this.#resume());
    // Transfers may be open already.
    this.#resume();
  }

  /** The samples, oldest first. */
  get samples(): readonly SpeedSample[] {
    this.#addIdle();
    return this.#samples;
  }

  /** Ends the sampling. */
  close(): void {
    this.#stopListening();
    this.#cancel?.();
  }

  #resume(): void {
    this.#addIdle();
    this.#cancel ??= this.#clock.at(this.#dueAt, () => {
      this.#cancel = undefined;
      this.#dueAt = after(this.#clock.now(), INTERVAL_MS);
      if (this.#sample()) this.#resume();
    });
  }

  /** Adds the samples that were due while no transfer was open. */
  #addIdle(): void {
    if (this.#cancel !== undefined) return;
    const now = this.#clock.now();
    for (; this.#dueAt <= now; this.#dueAt = after(this.#dueAt, INTERVAL_MS)) {
      const age = (now - this.#dueAt) / 1000;
      if (age <= (MAX_SAMPLES * INTERVAL_MS) / 1000)
        this.#add({
          at: Math.round(this.#clock.unixSeconds() - age) as UnixSeconds,
          down: 0,
          up: 0,
          transfers: [],
        });
    }
  }

  /** Returns false if no transfer is open. */
  #sample(): boolean {
    const transfers = this.#engine.figures().transfers.map(({ infohash, figures }) => ({
      infohash,
      down: Math.round(figures.bytesPerSecondDown),
      up: Math.round(figures.bytesPerSecondUp),
    }));
    const sum = (of: "down" | "up") => transfers.reduce((total, each) => total + each[of], 0);
    this.#add({ at: this.#clock.unixSeconds(), down: sum("down"), up: sum("up"), transfers });
    return transfers.length > 0;
  }

  #add(sample: SpeedSample): void {
    this.#samples.push(sample);
    if (this.#samples.length > MAX_SAMPLES) this.#samples.shift();
  }
}
