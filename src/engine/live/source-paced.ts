import { SluiceError } from "../../base/errors.ts";
import { after, type Instant } from "../../base/time.ts";
import { deltaTicks, TICKS_PER_SECOND } from "../../media/timestamps.ts";
import { type ClockRun, ClockSplitter } from "../../media/ts-clock.ts";
import type { Clock } from "../../runtime/contract.ts";
import { type LiveFeed, pauseUntil } from "./source-feed.ts";

/** How a source is paced. */
export interface Pace {
  /** So much may come before its time: what plays at its own pace already is not held up by its jitter. */
  readonly earlyMs: number;
  /**
   * How much faster than its own clock it may go: clocks differ by up to 0.01 %, and what comes at another clock's pace must not pile
   * up before ours.
   */
  readonly speed: number;
}

/** For what lies there whole. */
export const FILE_PACE: Pace = { earlyMs: 0, speed: 1 };
/** For what most likely comes at its pace by itself, but need not. */
export const PIPE_PACE: Pace = { earlyMs: 2000, speed: 1.001 };

/** A packet that is so late is not caught up with: time goes on from it. */
const MAX_LATE_MS = 2000;
/** A clock that steps further than this has jumped. */
const MAX_STEP_TICKS = 10 * TICKS_PER_SECOND;
/** Without any clock for so long nothing can be paced. */
const MAX_UNCLOCKED_BYTES = 8 * 1024 * 1024;
/** Runs that are due so close together are given out together. */
const TOGETHER_MS = 10;

/** Gives the packets of another feed out as fast as their own clock says. */
export class PacedFeed implements LiveFeed {
  readonly #inner: LiveFeed;
  readonly #clock: Clock;
  readonly #pace: Pace;
  readonly #splitter = new ClockSplitter();
  readonly #closed = new AbortController();
  #runs: ClockRun[] = [];
  /** The last clock that was met, and when it was due. */
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
          "the stream has no clock (PCR), so nobody knows how fast it plays",
        );
    }
    const [first] = this.#runs;
    const bytes = first!.packets;
    const due = this.#due(first!.clock);
    let length = bytes.length;
    let taken = 1;
    // Runs of one feed lie one after another in memory: so do those that are given together.
    for (let run = this.#runs[taken]; run; run = this.#runs[taken]) {
      if (this.#peek(run.clock) > due + TOGETHER_MS) break;
      this.#due(run.clock);
      length += run.packets.length;
      taken++;
    }
    this.#runs.splice(0, taken);
    await pauseUntil(this.#clock, after(due, -this.#pace.earlyMs), signal);
    return signal.aborted ? undefined : new Uint8Array(bytes.buffer, bytes.byteOffset, length);
  }

  close(): void {
    this.#closed.abort();
    this.#inner.close();
  }

  /** When a run is due; time goes on from it. */
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
    // The clock has jumped, as where two films are joined: what comes is due at once.
    if (step < 0 || step > MAX_STEP_TICKS) return last.due;
    return after(last.due, (step * 1000) / TICKS_PER_SECOND / this.#pace.speed);
  }
}
