import { addressScope } from "../base/address.ts";
import { SluiceError } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import { type Budget, bothBudgets, RateLimit, URGENCY, type Urgency } from "../base/rate-limit.ts";
import type { SwarmLimits } from "../protocol/swarm/contract.ts";

/** More swarms with limits of their own than a user sets by hand. */
const MAX_LIMITED_SWARMS = 1_000;

/** Limits of one swarm in bytes per second, 0 for none. */
export interface OwnLimits {
  readonly upload: number;
  readonly download: number;
}

const NO_LIMITS: OwnLimits = { upload: 0, download: 0 };

/** Upload and download limits of all swarms together, and of single swarms. */
export class PeerLimits {
  readonly upload: RateLimit;
  readonly download: RateLimit;
  /** The limits apply to peers at private addresses, too. */
  limitLan: boolean;
  /** Only swarms with a limit. */
  readonly #own = new Map<Infohash, { upload: Budget; download: Budget; limits: OwnLimits }>();

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
  forSwarm(infohash: Infohash, urgency: () => Urgency): SwarmLimits {
    return {
      upload: bothBudgets(() => this.#own.get(infohash)?.upload, this.upload.budget(urgency)),
      download: bothBudgets(() => this.#own.get(infohash)?.download, this.download.budget(urgency)),
      isExempt: (host) => this.isExempt(host),
    };
  }

  /** Limits one swarm, which need not be open; the limits of all swarms apply as well. Throws `too_many`. */
  limitSwarm(infohash: Infohash, limits: OwnLimits): void {
    this.#own.delete(infohash);
    if (limits.upload === 0 && limits.download === 0) return;
    if (this.#own.size >= MAX_LIMITED_SWARMS)
      throw new SluiceError("too_many", `${MAX_LIMITED_SWARMS} transfers have a limit; remove one first`);
    const budget = (bytesPerSecond: number) => new RateLimit(bytesPerSecond).budget(() => URGENCY.files);
    this.#own.set(infohash, { upload: budget(limits.upload), download: budget(limits.download), limits });
  }

  /** Returns the limits of one swarm. */
  limitsOf(infohash: Infohash): OwnLimits {
    return this.#own.get(infohash)?.limits ?? NO_LIMITS;
  }

  /** Returns true if the limits do not apply to `host`: a private address, unless `limitLan` is set. */
  isExempt(host: string): boolean {
    if (this.limitLan) return false;
    const scope = addressScope(host);
    return scope === "private" || scope === "link-local" || scope === "loopback";
  }
}
