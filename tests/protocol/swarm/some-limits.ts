import { RateLimit, URGENCY } from "../../../src/base/rate-limit.ts";
import type { SwarmLimits } from "../../../src/protocol/swarm/contract.ts";

/** Rate limits of one swarm, in bytes a second; unlimited by default. */
export function someLimits({ uploadLimit = 0, downloadLimit = 0 }): SwarmLimits {
  return {
    upload: new RateLimit(uploadLimit).budget(() => URGENCY.files),
    download: new RateLimit(downloadLimit).budget(() => URGENCY.files),
    isExempt: () => false,
  };
}
