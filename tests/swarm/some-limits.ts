import { RateLimit, URGENCY } from "../../src/base/rate-limit.ts";
import type { SwarmLimits } from "../../src/swarm/contract.ts";

/** Limits that one swarm has for itself, in bytes a second; none unless said. */
export function someLimits({ uploadLimit = 0, downloadLimit = 0 }): SwarmLimits {
  return {
    upload: new RateLimit(uploadLimit).budget(URGENCY.files),
    download: new RateLimit(downloadLimit).budget(URGENCY.files),
    isExempt: () => false,
  };
}
