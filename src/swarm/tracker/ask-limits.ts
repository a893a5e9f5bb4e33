import { householdOf } from "../../base/network.ts";
import { TokenBucket } from "../../base/rate.ts";
import type { Instant } from "../../base/time.ts";

/** Whoever shares hundreds of files announces all of them at its start. */
const BURST_QUESTIONS = 200;
const QUESTIONS_PER_SECOND = 5;
/** Households that are remembered; one that was forgotten has its burst again. Nobody but a botnet has more. */
const MAX_HOUSEHOLDS = 10_000;

/** How often one household may ask a tracker. */
export class AskLimits {
  readonly #buckets = new Map<string, TokenBucket>();

  /** Households that are remembered now. */
  get size(): number {
    return this.#buckets.size;
  }

  /** Whether an asker at this address may ask now. */
  take(host: string, now: Instant): boolean {
    const household = householdOf(host);
    const bucket = this.#buckets.get(household) ?? new TokenBucket(QUESTIONS_PER_SECOND, BURST_QUESTIONS);
    // The last one asked is the last to be forgotten.
    this.#buckets.delete(household);
    this.#buckets.set(household, bucket);
    if (this.#buckets.size > MAX_HOUSEHOLDS) {
      for (const oldest of this.#buckets.keys()) {
        this.#buckets.delete(oldest);
        break;
      }
    }
    return bucket.take(1, now);
  }
}
