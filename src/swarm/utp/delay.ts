import { after, type Instant } from "../../base/time.ts";

/** Clocks drift, routes change: what was the least is believed for ten minutes (RFC 6817 2.4.2). */
const BUCKET_MS = 60_000;
const BUCKETS = 10;

/**
 * The least delay of a path, from samples by two clocks that do not agree (microseconds modulo 2^32): what a sample is
 * above it has been spent in queues.
 */
class DelayHistory {
  /** All numbers here are relative to the first sample. */
  #origin: number | undefined;
  #buckets: number[] = [];
  #nextBucketAt: Instant | undefined;
  /** The least sample, relative to the first one; 0 where there is none. */
  leastUs = 0;

  /** Takes a sample; returns how far it is above the least, in milliseconds. */
  add(sampleUs: number, now: Instant): number {
    this.#origin ??= sampleUs;
    const relative = (sampleUs - this.#origin) | 0;
    if (this.#nextBucketAt === undefined || now >= this.#nextBucketAt) {
      this.#nextBucketAt = after(now, BUCKET_MS);
      this.#buckets.push(relative);
      if (this.#buckets.length > BUCKETS) this.#buckets.shift();
      this.leastUs = Math.min(...this.#buckets);
    } else {
      const last = this.#buckets.length - 1;
      this.#buckets[last] = Math.min(this.#buckets[last]!, relative);
      this.leastUs = Math.min(this.leastUs, relative);
    }
    return (relative - this.leastUs) / 1000;
  }

  /** Says that the clocks have come apart by so much: what was least is so much more now. */
  shift(us: number): void {
    this.#buckets = this.#buckets.map((least) => least + us);
    this.leastUs += us;
  }
}

/** Recent samples of which the least counts: what a busy machine adds to some of them is no queue (RFC 6817 2.4.1). */
const RECENT = 8;
/** A larger step is a new route, no drift. */
const MAX_DRIFT_US = 10_000;

/** How long our packets wait in queues on their way to the peer. */
export class QueueDelay {
  readonly #ours = new DelayHistory();
  readonly #theirs = new DelayHistory();
  #recent: number[] = [];
  #hasTheirs = false;

  /** The delay of our packets, in milliseconds; 0 while it is not known. */
  get ms(): number {
    return this.#recent.length === 0 ? 0 : Math.min(...this.#recent);
  }

  /** The least delay that is known, relative to the first sample. */
  get leastUs(): number {
    return this.#ours.leastUs;
  }

  /** The peer tells what a packet of ours took. */
  told(sampleUs: number, now: Instant): void {
    this.#recent.push(Math.max(0, this.#ours.add(sampleUs, now)));
    if (this.#recent.length > RECENT) this.#recent.shift();
  }

  /**
   * What a packet of the peer took. Where its clock goes slower than ours, the least of these sinks and the least of
   * ours rises just as much, which would look like a queue: it is taken back.
   */
  saw(sampleUs: number, now: Instant): void {
    const before = this.#theirs.leastUs;
    this.#theirs.add(sampleUs, now);
    const sankUs = before - this.#theirs.leastUs;
    if (this.#hasTheirs && sankUs > 0 && sankUs <= MAX_DRIFT_US) this.#ours.shift(sankUs);
    this.#hasTheirs = true;
  }

  /** Samples of a time that has gone say nothing any more. */
  forget(): void {
    this.#recent = [];
  }
}
