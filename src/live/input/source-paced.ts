import { sleepUntil } from "../../async/sleep.ts";
import { SluiceError } from "../../base/errors.ts";
import { after, type Instant } from "../../base/time.ts";
import { deltaTicks, TICKS_PER_SECOND } from "../../media/timestamps.ts";
import { type ClockRun, ClockSplitter } from "../../media/ts-clock.ts";
import type { Clock } from "../../runtime/contract.ts";
import type { LiveFeed } from "./source-feed.ts";

/** How packets are paced. */
export interface Pace {
  /** Packets may be delivered this much ahead of their time, so that the jitter of a real-time source causes no delay. */
  readonly earlyMs: number;
  /** How much faster than its own clock a source may run: clocks differ by up to 0.01 %, and packets of a real-time
   * source must not accumulate. */
  readonly speed: number;
}

/** For files. */
export const FILE_PACE: Pace = { earlyMs: 0, speed: 1 };
/** For sources that usually run in real time. */
export const PIPE_PACE: Pace = { earlyMs: 2000, speed: 1.001 };

/** If a packet is later than this, the timeline continues from it; lost time is not made up. */
const MAX_LATE_MS = 2000;
/** A larger step between two clock values is a discontinuity. */
const MAX_STEP_TICKS = 10 * TICKS_PER_SECOND;
/** Without a clock value in this many bytes, the stream cannot be paced. */
const MAX_UNCLOCKED_BYTES = 8 * 1024 * 1024;
/** Runs that are due within this time are delivered together. */
const BATCH_MS = 10;

/** Delivers the packets of another feed at the rate of their own clock (PCR). */
export class PacedFeed implements LiveFeed {
  readonly #inner: LiveFeed;
  readonly #clock: Clock;
  readonly #pace: Pace;
  readonly #splitter = new ClockSplitter();
  readonly #closed = new AbortController();
  #runs: ClockRun[] = [];
  /** The last clock value, and when it was due. */
  #last: { readonly ticks: number; readonly due: Instant } | undefined;

  constructor(inner: LiveFeed, clock: Clock, pace: Pace) {
    this.#inner = inner;
    this.#clock = clock;
    this.#pace = pace;
  }

  async next(): Promise<Uint8Array | undefined> {
    const { signal } = this.#closed;
    if (this.#runs.length === 0) {
      const packets = await this.#inner.next();
      if (packets === undefined || signal.aborted) return undefined;
      this.#runs = this.#splitter.push(packets);
      if (this.#splitter.silentBytes > MAX_UNCLOCKED_BYTES)
        throw new SluiceError(
          "broken_media",
          "the stream has no clock (PCR), so it cannot be sent at its own speed",
        );
    }
    const [first] = this.#runs;
    const bytes = first!.packets;
    const due = this.#due(first!.clock);
    let length = bytes.length;
    let taken = 1;
    // Runs of one feed are adjacent in memory, and so are runs that are delivered together.
    for (let run = this.#runs[taken]; run; run = this.#runs[taken]) {
      if (this.#peek(run.clock) > due + BATCH_MS) break;
      this.#due(run.clock);
      length += run.packets.length;
      taken++;
    }
    this.#runs.splice(0, taken);
    await sleepUntil(this.#clock, after(due, -this.#pace.earlyMs), signal);
    return signal.aborted ? undefined : new Uint8Array(bytes.buffer, bytes.byteOffset, length);
  }

  close(): void {
    this.#closed.abort();
    this.#inner.close();
  }

  /** Returns when a run is due, and continues the timeline from it. */
  #due(ticks: number | undefined): Instant {
    const now = this.#clock.now();
    if (ticks === undefined) return this.#last?.due ?? now;
    const planned = this.#peek(ticks);
    const due = planned < now - MAX_LATE_MS ? now : planned;
    this.#last = { ticks, due };
    return due;
  }

  #peek(ticks: number | undefined): Instant {
    const last = this.#last;
    if (!last || ticks === undefined) return last?.due ?? this.#clock.now();
    const step = deltaTicks(ticks, last.ticks);
    // The clock has jumped, for example between two joined recordings: the run is due at once.
    if (step < 0 || step > MAX_STEP_TICKS) return last.due;
    return after(last.due, (step * 1000) / TICKS_PER_SECOND / this.#pace.speed);
  }
}
