import { householdOf } from "./network.ts";
import { TokenBucket } from "./rate.ts";
import type { Instant } from "./time.ts";

/** Limits of a {@link HouseholdLimit}. */
interface HouseholdRate {
  /** Sustained operations per second and household. */
  readonly perSecond: number;
  /** Operations that a household may perform at once after a pause. */
  readonly burst: number;
  /** Households tracked at a time; the least recently active is forgotten first, and then has its full burst again. */
  readonly maxHouseholds: number;
}

/** Limits how often each household (see {@link householdOf}) may perform a costly operation: one {@link TokenBucket} each. */
export class HouseholdLimit {
  readonly #rate: HouseholdRate;
  readonly #buckets = new Map<string, TokenBucket>();

  constructor(rate: HouseholdRate) {
    this.#rate = rate;
  }

  /** Households tracked at present. */
  get size(): number {
    return this.#buckets.size;
  }

  /** Counts one operation of the household of `host`. Returns false if the household is over its limit. */
  take(host: string, now: Instant): boolean {
    const { perSecond, burst, maxHouseholds } = this.#rate;
    const household = householdOf(host);
    const bucket = this.#buckets.get(household) ?? new TokenBucket(perSecond, burst);
    // Moved to the end of the map, so that the first key is the least recently active household.
    this.#buckets.delete(household);
    this.#buckets.set(household, bucket);
    const [oldest] = this.#buckets.keys();
    if (oldest !== undefined && this.#buckets.size > maxHouseholds) this.#buckets.delete(oldest);
    return bucket.take(1, now);
  }
}
