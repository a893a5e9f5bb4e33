import { RateMeter } from "./rate.ts";
import { after, type Instant } from "./time.ts";

/** What may go at once after a pause, so that the limit holds over any few seconds: a quarter of one, or two blocks. */
const BURST_SECONDS = 0.25;
const LEAST_BURST_BYTES = 32 * 1024;
/** So far one may be ahead of another that waits: what those who look ten times a second need to use it all. */
const TURN_SECONDS = 0.1;
/** Who was refused counts as waiting for so long: some rounds of a swarm that asks ten times a second. */
const WAITING_MS = 250;
/** Who is refused in favour of another may ask again then. */
const RECHECK_MS = 20;
/** Who has asked for nothing for so long has no claim to what went by. */
const IDLE_MS = 1_000;
/** And after so long it shares the limit with nobody: a round of who is served by whom, and a margin. */
const GONE_MS = 15_000;
/** Of a limit this share is all that ever comes: what is sent in bursts never fills it. */
const FULL_SHARE = 0.85;

/** Who comes first where a limit does not suffice: what is late is worth nothing to who watches live. */
export const URGENCY = { live: 0, files: 1 } as const;
export type Urgency = (typeof URGENCY)[keyof typeof URGENCY];

/** One user's part in a limit. */
export interface Budget {
  /** Takes `bytes`, where that is allowed now; false where the caller must wait. May go below nothing once. */
  take(bytes: number, now: Instant): boolean;
  /** Counts what could not be asked about before it went by; less than nothing gives back what was taken in vain. */
  spend(bytes: number, now: Instant): void;
  /** In how many milliseconds something may be taken again; 0: now. */
  waitMs(now: Instant): number;
  /** What falls to this user of the whole limit, in bytes a second; 0 for no limit. */
  fairBytesPerSecond(now: Instant): number;
  /**
   * The whole limit, in bytes a second, where it is what holds this user back: all of it is used, and of what the more urgent
   * leave this user has its part already. 0 where it does not.
   */
  heldToBytesPerSecond(now: Instant): number;
}

interface Lane {
  readonly urgency: Urgency;
  /** All that it was given, as far as it counts against others. */
  served: number;
  /** What it was given lately. */
  readonly rate: RateMeter;
  askedAt: Instant | undefined;
  waitingUntil: Instant | undefined;
}

/**
 * A limit that several users share, which holds for all of them together: the more urgent before the others, and equals
 * alike. Each has a {@link Budget} of it. It begins with nothing, and fills at its rate.
 */
export class RateLimit {
  #bytesPerSecond: number;
  #tokens = 0;
  #filledAt: Instant | undefined;
  readonly #asking = new Set<Lane>();

  /** In bytes a second; 0 for no limit. */
  constructor(bytesPerSecond: number) {
    this.#bytesPerSecond = bytesPerSecond;
  }

  get bytesPerSecond(): number {
    return this.#bytesPerSecond;
  }

  /** Another limit from now on. */
  change(bytesPerSecond: number, now: Instant): void {
    this.#fill(now);
    if (this.#bytesPerSecond === 0) this.#tokens = 0;
    this.#bytesPerSecond = bytesPerSecond;
  }

  /** A budget for one more user. Those that are not used any more need not be given back. */
  budget(urgency: Urgency): Budget {
    const lane: Lane = {
      urgency,
      served: 0,
      rate: new RateMeter(),
      askedAt: undefined,
      waitingUntil: undefined,
    };
    return {
      take: (bytes, now) => this.#take(lane, bytes, now),
      spend: (bytes, now) => this.#spend(lane, bytes, now),
      waitMs: (now) => this.#waitMs(lane, now),
      fairBytesPerSecond: (now) => this.#fair(lane, now),
      heldToBytesPerSecond: (now) => (this.#isHolding(lane, now) ? this.#bytesPerSecond : 0),
    };
  }

  #take(lane: Lane, bytes: number, now: Instant): boolean {
    if (this.#bytesPerSecond === 0) return true;
    this.#fill(now);
    this.#ask(lane, now);
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
    this.#ask(lane, now);
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
    return this.#isBehind(lane, now) ? RECHECK_MS : 0;
  }

  #fair(lane: Lane, now: Instant): number {
    if (this.#bytesPerSecond === 0) return 0;
    this.#forget(now);
    const others = this.#asking.size - (this.#asking.has(lane) ? 1 : 0);
    return this.#bytesPerSecond / (others + 1);
  }

  #isHolding(lane: Lane, now: Instant): boolean {
    if (this.#bytesPerSecond === 0 || !isActive(lane, now)) return false;
    const full = FULL_SHARE * this.#bytesPerSecond;
    let [used, left, equals] = [0, full, 0];
    for (const other of this.#asking) {
      const rate = other.rate.bytesPerSecond(now);
      used += rate;
      if (other.urgency < lane.urgency) left -= rate;
      if (other.urgency === lane.urgency && isActive(other, now)) equals++;
    }
    return used >= full && lane.rate.bytesPerSecond(now) >= Math.max(0, left) / equals;
  }

  /** Whether another that waits comes first. */
  #isBehind(lane: Lane, now: Instant): boolean {
    const turn = TURN_SECONDS * this.#bytesPerSecond;
    for (const other of this.#asking) {
      if (other === lane || other.waitingUntil === undefined || other.waitingUntil <= now) continue;
      if (other.urgency < lane.urgency) return true;
      if (other.urgency === lane.urgency && other.served + turn < lane.served) return true;
    }
    return false;
  }

  /** Notes that a user is there. One that comes, or comes back, begins where the others are. */
  #ask(lane: Lane, now: Instant): void {
    const isBack = lane.askedAt === undefined || now - lane.askedAt > IDLE_MS;
    if (isBack) {
      this.#forget(now);
      const active = [...this.#asking].filter((other) => other !== lane && isActive(other, now));
      if (active.length > 0) lane.served = Math.min(...active.map(({ served }) => served));
      this.#asking.add(lane);
    }
    lane.askedAt = now;
  }

  #forget(now: Instant): void {
    for (const lane of this.#asking) {
      if (lane.askedAt !== undefined && now - lane.askedAt > GONE_MS) this.#asking.delete(lane);
    }
  }

  #fill(now: Instant): void {
    const elapsed = this.#filledAt === undefined ? 0 : now - this.#filledAt;
    this.#filledAt = now;
    const burst = Math.max(BURST_SECONDS * this.#bytesPerSecond, LEAST_BURST_BYTES);
    this.#tokens = Math.min(burst, this.#tokens + (elapsed * this.#bytesPerSecond) / 1000);
  }
}

function isActive({ askedAt }: Lane, now: Instant): boolean {
  return askedAt !== undefined && now - askedAt <= IDLE_MS;
}

/** Of what is not limited. */
export const NO_LIMIT: Budget = {
  take: () => true,
  spend() {},
  waitMs: () => 0,
  fairBytesPerSecond: () => 0,
  heldToBytesPerSecond: () => 0,
};
