import { TokenBucket } from "../base/rate.ts";
import type { Budget } from "../base/rate-limit.ts";
import { after, type Instant } from "../base/time.ts";
import type { LivePriority } from "../protocol/live/contract.ts";
import type { UploadAllowance } from "../transfer/piece-segments.ts";

/** A connection with a send queue. */
export interface LiveSender {
  /** No limit applies to it. */
  readonly isExempt: boolean;
  /** Returns the priority of the next message; undefined if none waits, or the socket buffer is full. */
  top(now: Instant): LivePriority | undefined;
  /** Sends about `maxBytes` bytes with priorities up to `last`, at least one message; returns the number of bytes. */
  send(maxBytes: number, last: LivePriority, now: Instant): number;
}

/** Burst: a tenth of a second, so that no second exceeds the limit by much; at least one fragment. */
const BURST_SECONDS = 0.1;
const MIN_BURST_BYTES = 16 * 1024;
/** Bytes per turn of one sender. */
const TURN_BYTES = 16 * 1024;
const NO_LIMIT_BYTES = 64 * 1024;
/** Delay of a response that waits for connections. */
const RETRY_MS = 50;

/** Shares two upload limits, the stream's own and its part of the engine's, among all connections of a stream: by
 * priority, and in turn within a priority. */
export class UploadLimit implements UploadAllowance {
  readonly #bucket: TokenBucket;
  readonly #shared: Budget;
  readonly #waiting = new Set<LiveSender>();

  /** `bytesPerSecond`: the stream's own limit, 0 for none. `shared`: its part of the engine's limit. */
  constructor(bytesPerSecond: number, shared: Budget) {
    this.#shared = shared;
    this.#bucket = new TokenBucket(bytesPerSecond, Math.max(BURST_SECONDS * bytesPerSecond, MIN_BURST_BYTES));
  }

  /** The sender has queued data. */
  add(sender: LiveSender): void {
    this.#waiting.add(sender);
  }

  /** The sender is gone. */
  remove(sender: LiveSender): void {
    this.#waiting.delete(sender);
  }

  /** Sends what may be sent now. Returns when to call it again if a limit is reached. */
  share(now: Instant): Instant | undefined {
    const isUnlimited = this.#bucket.bytesPerSecond === 0 && this.#shared.fairShareBytesPerSecond(now) === 0;
    for (const sender of this.#waiting) {
      if (!isUnlimited && !sender.isExempt) continue;
      while (sender.top(now) !== undefined && sender.send(NO_LIMIT_BYTES, 3, now) > 0);
      this.#waiting.delete(sender);
    }
    for (;;) {
      const next = this.#next(now);
      if (!next) return undefined;
      const waitMs = this.#waitMs(now);
      if (waitMs > 0) return after(now, waitMs);
      const sent = next.sender.send(TURN_BYTES, next.top, now);
      this.spend(sent, now);
      // Moves it to the end of the queue.
      this.#waiting.delete(next.sender);
      if (sent > 0) this.#waiting.add(next.sender);
    }
  }

  /** Returns for how many ms a response outside the connections must wait before it sends more: connections come first. */
  waitMs(now: Instant): number {
    return this.#waiting.size > 0 ? RETRY_MS : this.#waitMs(now);
  }

  /** Counts bytes that were sent outside the connections. */
  spend(bytes: number, now: Instant): void {
    this.#bucket.spend(bytes, now);
    this.#shared.spend(bytes, now);
  }

  /** Returns how long both limits require to wait; the shared one is asked last, because asking it delays other
   * swarms. */
  #waitMs(now: Instant): number {
    const waitMs = this.#bucket.waitMs(now);
    return waitMs > 0 || this.#shared.take(0, now) ? waitMs : Math.max(1, this.#shared.waitMs(now));
  }

  /** Returns the sender with the highest priority; among equals, the one that has waited longest for its turn. */
  #next(now: Instant): { readonly sender: LiveSender; readonly top: LivePriority } | undefined {
    let best: { readonly sender: LiveSender; readonly top: LivePriority } | undefined;
    for (const sender of this.#waiting) {
      const top = sender.top(now);
      if (top === undefined) this.#waiting.delete(sender);
      else if (!best || top < best.top) best = { sender, top };
    }
    return best;
  }
}
