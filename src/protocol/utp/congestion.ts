import { after, type Instant } from "../../base/time.ts";
import { MAX_WINDOW_BYTES } from "./limits.ts";

/** Target queueing delay: above it, other traffic suffers (BEP 29, RFC 6817). */
const TARGET_MS = 100;
/** Initial window (RFC 6928). */
const FIRST_WINDOW_BYTES = 14_600;
/** Two packets: with a single one, a delayed acknowledgement would stop the connection (RFC 6817 2.4.2). */
const MIN_WINDOW_BYTES = 2_800;
/** Growth of the window per round trip without queueing delay. */
const GAIN_BYTES = 3_000;
/** Share of the window that a loss leaves (CUBIC, RFC 9438 4.6). */
const DECREASE = 0.7;
/** Below the window at the last loss, this share of the distance is regained per round trip, as CUBIC approaches it quickly. */
const REGAIN = 1 / 8;
/** Slow start ends at this delay: one round trip later it will have doubled. */
const SLOW_START_END_MS = TARGET_MS / 2;
/** A higher share of lost packets is not due to chance. */
const RANDOM_LOSS = 0.1;
/** The loss share is averaged over about this many packets. */
const LOSS_MEMORY = 64;
/** A lower delay may be caused by busy machines; a higher one is a queue. */
const NOISE_MS = 10;
/** The queue depth is its maximum within this time. */
const PEAK_MS = 10_000;
/** A queue that persists for this time may be a measurement error: a slowdown then sends almost nothing for a moment, so that
 * the minimum delay is measured again. Each slowdown that finds no lower minimum doubles the time. */
const STANDING_MS = 10_000;
const MAX_STANDING_MS = 160_000;
/** A slowdown has found a lower minimum if it differs by this much. */
const MIN_IMPROVEMENT_US = 10_000;

/** What an acknowledgement reports to congestion control. */
interface AckSample {
  readonly bytes: number;
  /** Queueing delay in milliseconds. */
  readonly delayMs: number;
  /** Minimum delay in microseconds. */
  readonly minimumUs: number;
  readonly roundTripMs: number;
  /** Whether the window limited sending; an unused window does not grow. */
  readonly isLimited: boolean;
}

/**
 * Congestion window by LEDBAT (RFC 6817), which yields when queues build up. It differs in one point: packets lost without
 * queueing delay are lost by chance and do not reduce the window, because a player would stall. See docs/design/utp.md.
 */
export class Congestion {
  #window = FIRST_WINDOW_BYTES;
  /** Slow start: the window doubles per round trip up to this size. */
  #slowStartLimit = Number.POSITIVE_INFINITY;
  /** The window at the last loss. */
  #ceiling = 0;
  #lossShare = 0;
  #peakMs = 0;
  #peakUntil: Instant | undefined;
  #standingSince: Instant | undefined;
  #standingMs = STANDING_MS;
  /** A slowdown in progress: until when, and the values before it. */
  #slowdown: { readonly until: Instant; readonly window: number; readonly minimumUs: number } | undefined;

  /** In bytes. */
  get windowBytes(): number {
    return this.#slowdown ? MIN_WINDOW_BYTES : this.#window;
  }

  /** Packets were acknowledged. */
  acked(packets: number, sample: AckSample, now: Instant): void {
    this.#lossShare *= (1 - 1 / LOSS_MEMORY) ** packets;
    this.#updatePeak(sample.delayMs, now);
    if (this.#slowdown) {
      if (now >= this.#slowdown.until) this.#endSlowdown(this.#slowdown, sample.minimumUs, now);
      return;
    }
    if (this.#window < this.#slowStartLimit) this.#slowStart(sample);
    else this.#avoidCongestion(sample);
    this.#window = Math.min(Math.max(this.#window, MIN_WINDOW_BYTES), MAX_WINDOW_BYTES);
    this.#watchQueue(sample, now);
  }

  /** Packets were lost while others were delayed by `delayMs`. The window shrinks at most once per round trip (`isFirst`). */
  lost(packets: number, delayMs: number, isFirst: boolean): void {
    this.#lossShare = 1 - (1 - this.#lossShare) * (1 - 1 / LOSS_MEMORY) ** packets;
    if (!isFirst || this.#slowdown) return;
    // Slow start sends bursts, whose packets delay each other.
    const minimumMs = this.#window < this.#slowStartLimit ? SLOW_START_END_MS : NOISE_MS;
    const isQueueFull = delayMs >= minimumMs && delayMs >= this.#peakMs / 2;
    if (!isQueueFull && this.#lossShare <= RANDOM_LOSS) return;
    this.#ceiling = this.#window;
    this.#window = Math.max(this.#window * DECREASE, MIN_WINDOW_BYTES);
    this.#slowStartLimit = this.#window;
  }

  /** A retransmission timeout: restarts with slow start. */
  timedOut(): void {
    this.#slowdown = undefined;
    // A second timeout in a row does not reveal a new capacity of the path.
    if (this.#window > MIN_WINDOW_BYTES)
      this.#slowStartLimit = Math.max(this.#window / 2, 2 * MIN_WINDOW_BYTES);
    this.#window = MIN_WINDOW_BYTES;
    this.#standingSince = undefined;
  }

  #slowStart({ bytes, delayMs, isLimited }: AckSample): void {
    if (delayMs > SLOW_START_END_MS) this.#slowStartLimit = this.#window;
    else if (isLimited) this.#window += bytes;
  }

  /** Grows in proportion to the distance below the target delay, and shrinks by the share above it, which is fair to others. */
  #avoidCongestion({ bytes, delayMs, isLimited }: AckSample): void {
    const acked = Math.min(1, bytes / this.#window);
    const left = 1 - delayMs / TARGET_MS;
    if (left < 0) this.#window += Math.max(left, -0.5) * this.#window * acked;
    else if (isLimited) {
      const gain = Math.max(GAIN_BYTES, (this.#ceiling - this.#window) * REGAIN);
      this.#window += left * gain * acked;
    }
  }

  #updatePeak(delayMs: number, now: Instant): void {
    if (delayMs < this.#peakMs && this.#peakUntil !== undefined && now < this.#peakUntil) return;
    this.#peakMs = delayMs;
    this.#peakUntil = after(now, PEAK_MS);
  }

  #watchQueue({ delayMs, minimumUs, roundTripMs }: AckSample, now: Instant): void {
    if (delayMs < TARGET_MS / 4 || this.#window < this.#slowStartLimit) {
      this.#standingSince = undefined;
      return;
    }
    this.#standingSince ??= now;
    if (now - this.#standingSince < this.#standingMs) return;
    this.#standingSince = undefined;
    this.#slowdown = { until: after(now, 2 * roundTripMs), window: this.#window, minimumUs };
  }

  #endSlowdown(
    slowdown: { readonly window: number; readonly minimumUs: number },
    minimumUs: number,
    now: Instant,
  ): void {
    const hasImproved = slowdown.minimumUs - minimumUs >= MIN_IMPROVEMENT_US;
    this.#standingMs = hasImproved ? STANDING_MS : Math.min(2 * this.#standingMs, MAX_STANDING_MS);
    this.#slowdown = undefined;
    this.#slowStartLimit = slowdown.window / 2;
    this.#window = Math.min(FIRST_WINDOW_BYTES, this.#slowStartLimit);
    this.#peakMs = 0;
    this.#peakUntil = now;
  }
}
