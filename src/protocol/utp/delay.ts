import { after, type Instant } from "../../base/time.ts";

/** Clocks drift and routes change, so a minimum is valid for ten minutes (RFC 6817 2.4.2). */
const BUCKET_MS = 60_000;
const BUCKETS = 10;

/**
 * The minimum delay of a path, from samples of two unsynchronized clocks (microseconds modulo 2^32). The delay above the
 * minimum is queueing delay.
 */
class DelayHistory {
  /** The first sample; all other values are relative to it. */
  /** All numbers here are relative to the first sample. */
  #origin: number | undefined;
  #buckets: number[] = [];
  #nextBucketAt: Instant | undefined;
  /** The minimum, relative to the first sample; 0 before it. */
  minimumUs = 0;

  /** Adds a sample; returns how far it is above the minimum, in milliseconds. */
  add(sampleUs: number, now: Instant): number {
    this.#origin ??= sampleUs;
    const relative = (sampleUs - this.#origin) | 0;
    if (this.#nextBucketAt === undefined || now >= this.#nextBucketAt) {
      this.#nextBucketAt = after(now, BUCKET_MS);
      this.#buckets.push(relative);
      if (this.#buckets.length > BUCKETS) this.#buckets.shift();
      this.minimumUs = Math.min(...this.#buckets);
    } else {
      const last = this.#buckets.length - 1;
      this.#buckets[last] = Math.min(this.#buckets[last]!, relative);
      this.minimumUs = Math.min(this.minimumUs, relative);
    }
    return (relative - this.minimumUs) / 1000;
  }

  /** Corrects the minimum for clock drift. */
  shift(us: number): void {
    this.#buckets = this.#buckets.map((minimum) => minimum + us);
    this.minimumUs += us;
  }
}

/** The minimum of this many recent samples counts: delays added by a busy machine are no queue (RFC 6817 2.4.1). */
const RECENT = 8;
/** A larger change is a new route, not drift. */
const MAX_DRIFT_US = 10_000;

/** Measures how long packets to the peer wait in queues (RFC 6817). */
export class QueueDelay {
  readonly #outgoing = new DelayHistory();
  readonly #incoming = new DelayHistory();
  #recent: number[] = [];
  #hasIncoming = false;

  /** Queueing delay of outgoing packets in milliseconds; 0 while unknown. */
  get ms(): number {
    return this.#recent.length === 0 ? 0 : Math.min(...this.#recent);
  }

  /** The minimum delay, relative to the first sample. */
  get minimumUs(): number {
    return this.#outgoing.minimumUs;
  }

  /** Adds the delay of an outgoing packet, as reported by the peer. */
  addOutgoing(sampleUs: number, now: Instant): void {
    this.#recent.push(Math.max(0, this.#outgoing.add(sampleUs, now)));
    if (this.#recent.length > RECENT) this.#recent.shift();
  }

  /**
   * Adds the delay of an incoming packet. If the peer's clock is slower, the minimum of incoming packets sinks while that of
   * outgoing packets rises, which would look like a queue: the outgoing minimum is corrected.
   */
  addIncoming(sampleUs: number, now: Instant): void {
    const before = this.#incoming.minimumUs;
    this.#incoming.add(sampleUs, now);
    const driftUs = before - this.#incoming.minimumUs;
    if (this.#hasIncoming && driftUs > 0 && driftUs <= MAX_DRIFT_US) this.#outgoing.shift(driftUs);
    this.#hasIncoming = true;
  }

  /** Discards recent samples, which are outdated. */
  clearRecent(): void {
    this.#recent = [];
  }
}
