import { addressScope } from "../base/address.ts";
import { RateLimit, type Urgency } from "../base/rate-limit.ts";
import type { SwarmLimits } from "../protocol/swarm/contract.ts";

/** Upload and download limits of all swarms together. */
export class PeerLimits {
  readonly upload: RateLimit;
  readonly download: RateLimit;
  /** The limits apply to peers at private addresses, too. */
  limitLan: boolean;

  /** Limits in bytes per second, 0 for none. */
  constructor(limits: {
    readonly uploadLimit: number;
    readonly downloadLimit: number;
    readonly limitLan: boolean;
  }) {
    this.upload = new RateLimit(limits.uploadLimit);
    this.download = new RateLimit(limits.downloadLimit);
    this.limitLan = limits.limitLan;
  }

  /** Returns the limits as one swarm uses them; `urgency` is called at each use. */
  forSwarm(urgency: () => Urgency): SwarmLimits {
    return {
      upload: this.upload.budget(urgency),
      download: this.download.budget(urgency),
      isExempt: (host) => this.isExempt(host),
    };
  }

  /** Returns true if the limits do not apply to `host`: a private address, unless `limitLan` is set. */
  isExempt(host: string): boolean {
    if (this.limitLan) return false;
    const scope = addressScope(host);
    return scope === "private" || scope === "link-local" || scope === "loopback";
  }
}
