import { sleepUntil } from "../async/sleep.ts";
import { SluiceError } from "../base/errors.ts";
import type { Instant } from "../base/time.ts";
import type { Engine } from "../engine/engine.ts";
import type { Clock } from "../runtime/contract.ts";
import type { Activity, SpeedSample, TickKind } from "./activity-contract.ts";
import type { LogRing } from "./log-ring.ts";
import { SpeedHistory } from "./speed-history.ts";

/** Limit of streams of each kind: more pages than a household has open. Each costs one description of the engine a second. */
const MAX_STREAMS = 32;

/** Time between two updates of a page. */
const TICK_MS = 1_000;

/** Dependencies of {@link ActivityFeed}. */
interface ActivityDependencies {
  readonly clock: Clock;
  readonly engine: Pick<Engine, "figures" | "onTransferOpened">;
  readonly log: Pick<LogRing, "after">;
}

/** Remembers speeds and log lines, and ticks for pages that show live data. */
export class ActivityFeed implements Activity {
  readonly #clock: Clock;
  readonly #log: ActivityDependencies["log"];
  readonly #history: SpeedHistory;
  readonly #streams = { engine: 0, devices: 0, session: 0 };

  constructor({ clock, engine, log }: ActivityDependencies) {
    this.#clock = clock;
    this.#log = log;
    this.#history = new SpeedHistory(clock, engine);
  }

  get speeds(): readonly SpeedSample[] {
    return this.#history.samples;
  }

  logAfter(number: number): ReturnType<Activity["logAfter"]> {
    return this.#log.after(number);
  }

  ticks(kind: TickKind): ReadableStream<number> {
    if (kind !== "session" && this.#streams[kind] >= MAX_STREAMS)
      throw new SluiceError("too_many", `${MAX_STREAMS} pages already show live data; close one of them`);
    this.#streams[kind]++;
    const ended = new AbortController();
    const clock = this.#clock;
    let last: number | undefined;
    return new ReadableStream<number>(
      {
        async pull(controller) {
          const tick = Math.floor(clock.now() / TICK_MS);
          // All streams tick at the same moments, so they share one description of the engine.
          if (last === tick) await sleepUntil(clock, ((tick + 1) * TICK_MS) as Instant, ended.signal);
          if (ended.signal.aborted) return;
          last = Math.floor(clock.now() / TICK_MS);
          controller.enqueue(last);
        },
        cancel: () => {
          this.#streams[kind]--;
          ended.abort();
        },
      },
      { highWaterMark: 0 },
    );
  }

  /** Ends the sampling. */
  close(): void {
    this.#history.close();
  }
}
