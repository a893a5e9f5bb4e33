import { after, type Instant } from "../../base/time.ts";
import { MAX_WINDOW_BYTES } from "./limits.ts";

/** So long may our packets wait in queues: others notice more (BEP 29, RFC 6817). */
const TARGET_MS = 100;
/** What a beginner may send at once (RFC 6928): a player waits for it. */
const FIRST_WINDOW_BYTES = 14_600;
/** Two packets: with one, a delayed acknowledgement would stop everything (RFC 6817 2.4.2). */
const LEAST_WINDOW_BYTES = 2_800;
/** The window grows by so much in a round trip while there is no queue. */
const GAIN_BYTES = 3_000;
/** From this delay on the window no longer doubles: a round trip later there will be twice as much of it. */
const SLOW_START_END_MS = TARGET_MS / 2;
/** More of the packets than these are not lost by chance. */
const CHANCE_LOSS = 0.1;
/** The share of lost packets is that of about the last so many. */
const LOSS_MEMORY = 64;
/** A delay below this is what busy machines add; above, it is a queue. */
const NOISE_MS = 10;
/** The depth of the queue is what it was at most in so long. */
const PEAK_MS = 10_000;
/** A queue that stands for so long may be our own mistake: for a moment nearly nothing is sent, so that the least delay is
 * measured anew. Each time that this finds nothing new it waits twice as long. */
const STANDING_MS = 10_000;
const MAX_STANDING_MS = 160_000;
/** What is found must be so much less. */
const FOUND_US = 10_000;

/** What is known when an acknowledgement comes. */
export interface AckNews {
  readonly bytes: number;
  /** How long packets wait in queues, milliseconds. */
  readonly delayMs: number;
  /** The least delay known, microseconds. */
  readonly leastUs: number;
  readonly roundTripMs: number;
  /** Whether the window has held us back; a window that nobody fills proves nothing. */
  readonly isLimited: boolean;
}

/**
 * How many bytes may be on their way: LEDBAT (RFC 6817), which yields when packets begin to wait. It differs where a
 * player would starve: packets lost while nothing waits are lost by chance, and do not slow us down. See
 * docs/design/utp.md.
 */
export class Congestion {
  #window = FIRST_WINDOW_BYTES;
  /** Up to here the window doubles in a round trip. */
  #doublesTo = Number.POSITIVE_INFINITY;
  #lossShare = 0;
  #peakMs = 0;
  #peakUntil: Instant | undefined;
  #standingSince: Instant | undefined;
  #standingMs = STANDING_MS;
  /** The window is nearly closed until then, to become this again. */
  #lull: { readonly until: Instant; readonly window: number; readonly leastUs: number } | undefined;

  /** In bytes. */
  get windowBytes(): number {
    return this.#lull ? LEAST_WINDOW_BYTES : this.#window;
  }

  /** Packets have arrived. */
  acked(packets: number, news: AckNews, now: Instant): void {
    this.#lossShare *= (1 - 1 / LOSS_MEMORY) ** packets;
    this.#noticePeak(news.delayMs, now);
    if (this.#lull) {
      if (now >= this.#lull.until) this.#endLull(this.#lull, news.leastUs, now);
      return;
    }
    if (this.#window < this.#doublesTo) this.#double(news);
    else this.#steer(news);
    this.#window = Math.min(Math.max(this.#window, LEAST_WINDOW_BYTES), MAX_WINDOW_BYTES);
    this.#watchQueue(news, now);
  }

  /** Packets were lost, in a round trip for which nothing was done yet if `isNews`; `delayMs` is what others waited. */
  lost(packets: number, delayMs: number, isNews: boolean): void {
    this.#lossShare = 1 - (1 - this.#lossShare) * (1 - 1 / LOSS_MEMORY) ** packets;
    if (!isNews || this.#lull) return;
    // Who doubles sends in bursts, which wait for each other.
    const leastMs = this.#window < this.#doublesTo ? SLOW_START_END_MS : NOISE_MS;
    const isQueueFull = delayMs >= leastMs && delayMs >= this.#peakMs / 2;
    if (!isQueueFull && this.#lossShare <= CHANCE_LOSS) return;
    this.#window = Math.max(this.#window / 2, LEAST_WINDOW_BYTES);
    this.#doublesTo = this.#window;
  }

  /** Nothing has come back for long: what the path bears is found anew. */
  timedOut(): void {
    this.#lull = undefined;
    // The second time in a row says nothing new of what the path bore.
    if (this.#window > LEAST_WINDOW_BYTES)
      this.#doublesTo = Math.max(this.#window / 2, 2 * LEAST_WINDOW_BYTES);
    this.#window = LEAST_WINDOW_BYTES;
    this.#standingSince = undefined;
  }

  #double({ bytes, delayMs, isLimited }: AckNews): void {
    if (delayMs > SLOW_START_END_MS) this.#doublesTo = this.#window;
    else if (isLimited) this.#window += bytes;
  }

  /** Grows by what is left to the target, and shrinks by the share that is above it: so those who share a queue become alike. */
  #steer({ bytes, delayMs, isLimited }: AckNews): void {
    const acked = Math.min(1, bytes / this.#window);
    const left = 1 - delayMs / TARGET_MS;
    if (left < 0) this.#window += Math.max(left, -0.5) * this.#window * acked;
    else if (isLimited) this.#window += left * GAIN_BYTES * acked;
  }

  #noticePeak(delayMs: number, now: Instant): void {
    if (delayMs < this.#peakMs && this.#peakUntil !== undefined && now < this.#peakUntil) return;
    this.#peakMs = delayMs;
    this.#peakUntil = after(now, PEAK_MS);
  }

  #watchQueue({ delayMs, leastUs, roundTripMs }: AckNews, now: Instant): void {
    if (delayMs < TARGET_MS / 4 || this.#window < this.#doublesTo) {
      this.#standingSince = undefined;
      return;
    }
    this.#standingSince ??= now;
    if (now - this.#standingSince < this.#standingMs) return;
    this.#standingSince = undefined;
    this.#lull = { until: after(now, 2 * roundTripMs), window: this.#window, leastUs };
  }

  #endLull(lull: { readonly window: number; readonly leastUs: number }, leastUs: number, now: Instant): void {
    const isNew = lull.leastUs - leastUs >= FOUND_US;
    this.#standingMs = isNew ? STANDING_MS : Math.min(2 * this.#standingMs, MAX_STANDING_MS);
    this.#lull = undefined;
    this.#doublesTo = lull.window / 2;
    this.#window = Math.min(FIRST_WINDOW_BYTES, this.#doublesTo);
    this.#peakMs = 0;
    this.#peakUntil = now;
  }
}
