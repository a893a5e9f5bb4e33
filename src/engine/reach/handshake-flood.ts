import { addressScope } from "../../base/address.ts";
import { HouseholdLimit } from "../../base/household-limit.ts";
import { TokenBucket } from "../../base/rate.ts";
import type { Instant } from "../../base/time.ts";

/** An answer costs some 0.3 ms: so many a second take a few hundredths of a core, and no swarm is called more often. */
const ALL_PER_SECOND = 50;
const ALL_BURST = 150;
/** Several peers may live in one household; each calls once for each content, and now and then again. Who is forgotten
 * begins anew, but for the limit on all. */
const EACH = { perSecond: 2, burst: 20, maxHouseholds: 1_000 };

/** Bounds how often we compute for those who call us encrypted: that costs us as much as them. */
export class HandshakeFlood {
  readonly #all = new TokenBucket(ALL_PER_SECOND, ALL_BURST);
  readonly #each = new HouseholdLimit(EACH);

  /** Whether one more from this host is answered. */
  admits(host: string, now: Instant): boolean {
    // Whoever is on this machine could take its time in simpler ways; there may be many of us here.
    if (addressScope(host) === "loopback") return this.#all.take(1, now);
    // In this order, so that a household that is over its limit costs nobody else a place.
    return this.#each.take(host, now) && this.#all.take(1, now);
  }
}
