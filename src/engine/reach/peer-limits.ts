import { addressScope } from "../../base/address.ts";
import { RateLimit, type Urgency } from "../../base/rate-limit.ts";
import type { SwarmLimits } from "../../swarm/contract.ts";

/** What is sent to peers, and taken from them, at most: by all swarms together. */
export class PeerLimits {
  readonly upload: RateLimit;
  readonly download: RateLimit;
  readonly #limitLan: boolean;

  /** In bytes a second, 0 for no limit; `limitLan`: whether they hold in the own network too. */
  constructor(limits: {
    readonly uploadLimit: number;
    readonly downloadLimit: number;
    readonly limitLan: boolean;
  }) {
    this.upload = new RateLimit(limits.uploadLimit);
    this.download = new RateLimit(limits.downloadLimit);
    this.#limitLan = limits.limitLan;
  }

  /** What one swarm has of them. */
  forSwarm(urgency: Urgency): SwarmLimits {
    return {
      upload: this.upload.budget(urgency),
      download: this.download.budget(urgency),
      isExempt: (host) => this.isExempt(host),
    };
  }

  /** Whether they do not hold for an address: one of the own network, where the user says so. */
  isExempt(host: string): boolean {
    if (this.#limitLan) return false;
    const scope = addressScope(host);
    return scope === "private" || scope === "link-local" || scope === "loopback";
  }
}
