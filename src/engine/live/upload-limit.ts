import { TokenBucket } from "../../base/rate.ts";
import { after, type Instant } from "../../base/time.ts";
import type { LivePriority } from "../../swarm/live/contract.ts";

/** Somebody who has things to send. */
export interface LiveSender {
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

/** Shares one limit on upload among all connections: the most urgent class first, within a class in turn. */
export class UploadLimit {
  readonly #bucket: TokenBucket;
  readonly #waiting = new Set<LiveSender>();

  /** In bytes a second; 0 for no limit. */
  constructor(bytesPerSecond: number) {
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
    if (this.#bucket.bytesPerSecond === 0) {
      for (const sender of this.#waiting) {
        while (sender.top(now) !== undefined && sender.send(NO_LIMIT_BYTES, 3, now) > 0);
      }
      this.#waiting.clear();
      return undefined;
    }
    for (;;) {
      const next = this.#next(now);
      if (!next) return undefined;
      const waitMs = this.#bucket.waitMs(now);
      if (waitMs > 0) return after(now, waitMs);
      const sent = next.sender.send(TURN_BYTES, next.top, now);
      this.#bucket.take(sent, now);
      // To the end of the line.
      this.#waiting.delete(next.sender);
      if (sent > 0) this.#waiting.add(next.sender);
    }
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
