import { householdOf } from "./network.ts";
import { TokenBucket } from "./rate.ts";
import type { Instant } from "./time.ts";

/** How often each household may do something, and how many households are remembered. */
export interface HouseholdRate {
  readonly perSecond: number;
  /** What may come at once after a pause. */
  readonly burst: number;
  /** One that was forgotten has its burst again. */
  readonly maxHouseholds: number;
}

/** How often one household may do what costs us something: a {@link TokenBucket} for each. */
export class HouseholdLimit {
  readonly #rate: HouseholdRate;
  readonly #buckets = new Map<string, TokenBucket>();

  constructor(rate: HouseholdRate) {
    this.#rate = rate;
  }

  /** Households that are remembered now. */
  get size(): number {
    return this.#buckets.size;
  }

  /** Whether whoever is at this address may do it once more now. */
  take(host: string, now: Instant): boolean {
    const { perSecond, burst, maxHouseholds } = this.#rate;
    const household = householdOf(host);
    const bucket = this.#buckets.get(household) ?? new TokenBucket(perSecond, burst);
    // Moved to the end: those that have not come for longest are forgotten first.
    this.#buckets.delete(household);
    this.#buckets.set(household, bucket);
    const [oldest] = this.#buckets.keys();
    if (oldest !== undefined && this.#buckets.size > maxHouseholds) this.#buckets.delete(oldest);
    return bucket.take(1, now);
  }
}
