import { TokenBucket } from "../../base/rate.ts";
import type { Budget } from "../../base/rate-limit.ts";
import { after, type Instant } from "../../base/time.ts";
import type { LivePriority } from "../../swarm/live/contract.ts";

/** Somebody who has things to send. */
export interface LiveSender {
  /** No limit holds for it. */
  readonly isExempt: boolean;
  /** The class of what goes next; undefined where nothing waits, or its socket has no room. */
  top(now: Instant): LivePriority | undefined;
  /** Sends about `most` bytes of the classes up to `last`, one message at least; returns how many bytes went. */
  send(most: number, last: LivePriority, now: Instant): number;
}

/** What goes at once: a tenth of a second, so that no second has much more than the limit; a fragment at least. */
const BURST_SECONDS = 0.1;
const LEAST_BURST_BYTES = 16 * 1024;
/** One turn of one sender. */
const TURN_BYTES = 16 * 1024;
const NO_LIMIT_BYTES = 64 * 1024;

/** Shares limits on upload among all connections of a stream, its own and its part of the engine's: the most urgent class
 * first, within a class in turn. */
export class UploadLimit {
  readonly #bucket: TokenBucket;
  readonly #shared: Budget;
  readonly #waiting = new Set<LiveSender>();

  /** Its own in bytes a second, 0 for none; and what it has of the engine's. */
  constructor(bytesPerSecond: number, shared: Budget) {
    this.#shared = shared;
    this.#bucket = new TokenBucket(
      bytesPerSecond,
      Math.max(BURST_SECONDS * bytesPerSecond, LEAST_BURST_BYTES),
    );
  }

  /** Notes that it has something to send. */
  add(sender: LiveSender): void {
    this.#waiting.add(sender);
  }

  /** It is gone. */
  remove(sender: LiveSender): void {
    this.#waiting.delete(sender);
  }

  /** Lets send what may be sent now. When to come again, where the limit is in the way. */
  share(now: Instant): Instant | undefined {
    const isUnlimited = this.#bucket.bytesPerSecond === 0 && this.#shared.fairBytesPerSecond(now) === 0;
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
      this.#bucket.take(sent, now);
      this.#shared.spend(sent, now);
      // To the end of the line.
      this.#waiting.delete(next.sender);
      if (sent > 0) this.#waiting.add(next.sender);
    }
  }

  /** When both allow something; the shared one is asked last, as it then holds back others for us. */
  #waitMs(now: Instant): number {
    const waitMs = this.#bucket.waitMs(now);
    return waitMs > 0 || this.#shared.take(0, now) ? waitMs : Math.max(1, this.#shared.waitMs(now));
  }

  /** Who has the most urgent message; of several the one whose turn was longest ago. */
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
