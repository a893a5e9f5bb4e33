import { RateMeter } from "./rate.ts";
import { after, type Instant } from "./time.ts";

/** Burst after a pause: a quarter of a second, at least two blocks, so that the limit holds over any few seconds. */
const BURST_SECONDS = 0.25;
const MIN_BURST_BYTES = 32 * 1024;
/** How far a budget may be ahead of a waiting one: lets users that poll ten times a second use the whole limit. */
const MAX_LEAD_SECONDS = 0.1;
/** A refused budget counts as waiting for this time: a few rounds of a swarm that polls ten times a second. */
const WAITING_MS = 250;
/** Retry delay of a budget that was refused in favour of another. */
const RETRY_MS = 20;
/** A budget that was unused for this time has no claim to capacity that passed meanwhile. */
const IDLE_MS = 1_000;
/** A budget that was unused for this time gets no share of the limit: one choking round, and a margin. */
const FORGET_MS = 15_000;
/** A limit counts as used up from this share on: bursty traffic never fills it completely. */
const SATURATED_SHARE = 0.85;

/** Priorities of a limit. Late data is useless to a viewer of a live stream, so live transfers come first. Transfers without a
 * player come last. */
export const URGENCY = { live: 0, files: 1, idle: 2 } as const;
export type Urgency = (typeof URGENCY)[keyof typeof URGENCY];

/** One transfer's share of a {@link RateLimit}. */
export interface Budget {
  /** Takes `bytes` if the limit allows it; may overdraw once. Returns false if the caller must wait. */
  take(bytes: number, now: Instant): boolean;
  /** Counts bytes that were transferred without {@link Budget.take}. A negative number returns bytes that were taken but unused. */
  spend(bytes: number, now: Instant): void;
  /** Returns the milliseconds until something can be taken; 0 for now. */
  waitMs(now: Instant): number;
  /** Returns this budget's equal share of the limit, in bytes per second; 0 if there is no limit. */
  fairShareBytesPerSecond(now: Instant): number;
  /**
   * Returns the whole limit, in bytes per second, if it is what limits this budget: the limit is used up, and this budget already
   * has its share of what more urgent budgets leave. Returns 0 otherwise.
   */
  limitedToBytesPerSecond(now: Instant): number;
}

/** State of one budget. */
interface Lane {
  readonly urgency: () => Urgency;
  /** Bytes taken, for comparison with budgets of the same urgency. */
  served: number;
  /** Current rate of bytes taken. */
  readonly rate: RateMeter;
  activeAt: Instant | undefined;
  waitingUntil: Instant | undefined;
}

/**
 * A rate limit for the sum of several {@link Budget}s: more urgent budgets first, equal shares among budgets of the same urgency.
 * It starts empty and fills at its rate.
 */
export class RateLimit {
  #bytesPerSecond: number;
  #tokens = 0;
  #filledAt: Instant | undefined;
  readonly #lanes = new Set<Lane>();

  /** @param bytesPerSecond 0 means no limit. */
  constructor(bytesPerSecond: number) {
    this.#bytesPerSecond = bytesPerSecond;
  }

  /** The limit in bytes per second; 0 means no limit. */
  get bytesPerSecond(): number {
    return this.#bytesPerSecond;
  }

  /** Changes the limit. */
  change(bytesPerSecond: number, now: Instant): void {
    this.#fill(now);
    if (this.#bytesPerSecond === 0) this.#tokens = 0;
    this.#bytesPerSecond = bytesPerSecond;
  }

  /** Creates a budget; `urgency` is called at each use. An unused budget is forgotten; it need not be released. */
  budget(urgency: () => Urgency): Budget {
    const lane: Lane = {
      urgency,
      served: 0,
      rate: new RateMeter(),
      activeAt: undefined,
      waitingUntil: undefined,
    };
    return {
      take: (bytes, now) => this.#take(lane, bytes, now),
      spend: (bytes, now) => this.#spend(lane, bytes, now),
      waitMs: (now) => this.#waitMs(lane, now),
      fairShareBytesPerSecond: (now) => this.#fairShare(lane, now),
      limitedToBytesPerSecond: (now) => (this.#isLimiting(lane, now) ? this.#bytesPerSecond : 0),
    };
  }

  #take(lane: Lane, bytes: number, now: Instant): boolean {
    if (this.#bytesPerSecond === 0) return true;
    this.#fill(now);
    this.#markActive(lane, now);
    if (this.#tokens <= 0 || this.#isBehind(lane, now)) {
      lane.waitingUntil = after(now, WAITING_MS);
      return false;
    }
    lane.waitingUntil = undefined;
    this.#count(lane, bytes, now);
    return true;
  }

  #spend(lane: Lane, bytes: number, now: Instant): void {
    if (this.#bytesPerSecond === 0) return;
    this.#fill(now);
    this.#markActive(lane, now);
    this.#count(lane, bytes, now);
  }

  #count(lane: Lane, bytes: number, now: Instant): void {
    this.#tokens -= bytes;
    lane.served += bytes;
    lane.rate.add(bytes, now);
  }

  #waitMs(lane: Lane, now: Instant): number {
    if (this.#bytesPerSecond === 0) return 0;
    this.#fill(now);
    if (this.#tokens <= 0) return Math.ceil(((1 - this.#tokens) * 1000) / this.#bytesPerSecond);
    return this.#isBehind(lane, now) ? RETRY_MS : 0;
  }

  #fairShare(lane: Lane, now: Instant): number {
    if (this.#bytesPerSecond === 0) return 0;
    this.#forget(now);
    const others = this.#lanes.size - (this.#lanes.has(lane) ? 1 : 0);
    return this.#bytesPerSecond / (others + 1);
  }

  #isLimiting(lane: Lane, now: Instant): boolean {
    if (this.#bytesPerSecond === 0 || !isActive(lane, now)) return false;
    const urgency = lane.urgency();
    const full = SATURATED_SHARE * this.#bytesPerSecond;
    let [used, available, equals] = [0, full, 0];
    for (const other of this.#lanes) {
      const rate = other.rate.bytesPerSecond(now);
      used += rate;
      if (other.urgency() < urgency) available -= rate;
      if (other.urgency() === urgency && isActive(other, now)) equals++;
    }
    return used >= full && lane.rate.bytesPerSecond(now) >= Math.max(0, available) / equals;
  }

  /** Returns true if another waiting budget comes first. */
  #isBehind(lane: Lane, now: Instant): boolean {
    const urgency = lane.urgency();
    const maxLead = MAX_LEAD_SECONDS * this.#bytesPerSecond;
    for (const other of this.#lanes) {
      if (other === lane || other.waitingUntil === undefined || other.waitingUntil <= now) continue;
      if (other.urgency() < urgency) return true;
      if (other.urgency() === urgency && other.served + maxLead < lane.served) return true;
    }
    return false;
  }

  /** Marks a budget as active. A new or returning budget starts level with the one that took least. */
  #markActive(lane: Lane, now: Instant): void {
    const isReturning = lane.activeAt === undefined || now - lane.activeAt > IDLE_MS;
    if (isReturning) {
      this.#forget(now);
      const active = [...this.#lanes].filter((other) => other !== lane && isActive(other, now));
      if (active.length > 0) lane.served = Math.min(...active.map(({ served }) => served));
      this.#lanes.add(lane);
    }
    lane.activeAt = now;
  }

  #forget(now: Instant): void {
    for (const lane of this.#lanes) {
      if (lane.activeAt !== undefined && now - lane.activeAt > FORGET_MS) this.#lanes.delete(lane);
    }
  }

  #fill(now: Instant): void {
    const elapsed = this.#filledAt === undefined ? 0 : now - this.#filledAt;
    this.#filledAt = now;
    const burst = Math.max(BURST_SECONDS * this.#bytesPerSecond, MIN_BURST_BYTES);
    this.#tokens = Math.min(burst, this.#tokens + (elapsed * this.#bytesPerSecond) / 1000);
  }
}

function isActive({ activeAt }: Lane, now: Instant): boolean {
  return activeAt !== undefined && now - activeAt <= IDLE_MS;
}

/** A budget without a limit. */
export const NO_LIMIT: Budget = {
  take: () => true,
  spend() {},
  waitMs: () => 0,
  fairShareBytesPerSecond: () => 0,
  limitedToBytesPerSecond: () => 0,
};

/**
 * Combines the limit of one swarm with a limit that all swarms share: both apply. `own` returns the swarm's own budget, undefined
 * if it has none; it is called at each use.
 */
export function bothBudgets(own: () => Budget | undefined, shared: Budget): Budget {
  const each = () => [own(), shared].filter((budget) => budget !== undefined);
  return {
    take(bytes, now) {
      const first = own();
      if (first && first.waitMs(now) > 0) return false;
      if (!shared.take(bytes, now)) return false;
      first?.spend(bytes, now);
      return true;
    },
    spend: (bytes, now) => each().forEach((budget) => void budget.spend(bytes, now)),
    waitMs: (now) => Math.max(...each().map((budget) => budget.waitMs(now))),
    fairShareBytesPerSecond: (now) => smallest(each().map((budget) => budget.fairShareBytesPerSecond(now))),
    limitedToBytesPerSecond: (now) => smallest(each().map((budget) => budget.limitedToBytesPerSecond(now))),
  };
}

/** The smallest limit; 0 means no limit. */
function smallest(limits: readonly number[]): number {
  const set = limits.filter((limit) => limit > 0);
  return set.length > 0 ? Math.min(...set) : 0;
}
