import type { Instant } from "../../base/time.ts";
import { MAX_LINE_DELAY_SHARE } from "./limits.ts";
import type { LivePeer } from "./peer.ts";

/** Number of periods of which the rates are compared. */
const PERIODS = 8;
/** The line is busy while it delivers at least this share of the highest of these rates, and at least the bitrate. */
const BUSY_SHARE = 0.85;
/** A smaller delay is not one: without it, the time since the last chunk would count as delay. */
const MIN_DELAY_MS = 5;
/** While no parent pushes a chunk because requested ones fill the line, the last measurement is valid for this time. */
const HOLD_MS = 1_000;

/** Measures how long chunks wait on our own line: the least lateness of the chunks that parents pushed in the last one to two
 * periods. A line delivers in order, so a chunk that waits on it is no later than those that arrive now. One parent that is on
 * time proves that the line is free, so that late parents cannot pretend that it is full. */
export class LineDelay {
  readonly #periodMs: number;
  readonly #maxMs: number;
  readonly #bytesPerMs: number;
  /** Bytes per ms of the last periods, each the average of two; the newest is the last. */
  readonly #rates = new Array<number>(PERIODS).fill(0);
  #bytes = 0;
  #lastRate = 0;
  #since = 0;
  #leastMs = Number.POSITIVE_INFINITY;
  #lastLeastMs = Number.POSITIVE_INFINITY;
  #pushedAt = 0;
  #sender: LivePeer | undefined;
  /** When chunks of two parents arrived one after the other. */
  #severalAt = Number.NEGATIVE_INFINITY;

  /** Parents push once in `pieceMs`. */
  constructor(bytesPerSecond: number, pieceMs: number, lagMs: number) {
    this.#periodMs = pieceMs;
    this.#maxMs = MAX_LINE_DELAY_SHARE * lagMs;
    this.#bytesPerMs = bytesPerSecond / 1_000;
  }

  /** A chunk arrived. */
  received(bytes: number, now: Instant): void {
    this.#advance(now);
    this.#bytes += bytes;
  }

  /** A parent pushed a chunk, `lateMs` later than usual. */
  pushed(lateMs: number, from: LivePeer, now: Instant): void {
    this.#advance(now);
    this.#pushedAt = now;
    this.#leastMs = Math.min(this.#leastMs, lateMs - (from.window?.queueMs ?? 0));
    if (this.#sender && this.#sender !== from) this.#severalAt = now;
    this.#sender = from;
  }

  /** The delay of the line in ms; 0 if it is not busy, or if one parent is on time or only one delivers. */
  delayMs(now: Instant): number {
    this.#advance(now);
    const leastMs = Math.min(this.#leastMs, this.#lastLeastMs);
    if (leastMs === Number.POSITIVE_INFINITY) return 0;
    if (!this.#isBusy || leastMs <= MIN_DELAY_MS || now - this.#severalAt > HOLD_MS) return 0;
    return Math.min(this.#maxMs, leastMs + now - this.#pushedAt);
  }

  get #isBusy(): boolean {
    const rate = this.#rates[PERIODS - 1]!;
    return rate >= BUSY_SHARE * Math.max(this.#bytesPerMs, ...this.#rates);
  }

  #advance(now: Instant): void {
    const elapsedMs = now - this.#since;
    if (elapsedMs < this.#periodMs) return;
    const rate = this.#bytes / elapsedMs;
    this.#rates.push((rate + this.#lastRate) / 2);
    this.#rates.shift();
    this.#lastRate = rate;
    this.#bytes = 0;
    this.#since = now;
    const isHeld =
      this.#leastMs === Number.POSITIVE_INFINITY && this.#isBusy && now - this.#pushedAt < HOLD_MS;
    if (!isHeld) this.#lastLeastMs = this.#leastMs;
    this.#leastMs = Number.POSITIVE_INFINITY;
  }
}
