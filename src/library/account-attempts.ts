import { after, type Instant } from "../base/time.ts";

/** So many failures within a window are let go by; the next attempt is refused until the block is over. */
const MAX_FAILURES = 5;
const WINDOW_MS = 60_000;
const BLOCK_MS = 60_000;
/** Askers and accounts that are remembered. Each of them cost a slow hash, so that nobody can push others out quickly. */
const MAX_KEYS = 10_000;

interface Failures {
  readonly at: Instant[];
  blockedUntil: Instant | undefined;
}

/** Limits how often a password may be tried, for each asker and for each account. Time is an argument. */
export class AttemptLimit {
  /** The one that was touched longest ago first. */
  readonly #failures = new Map<string, Failures>();

  /**
   * Counts an attempt as failed until it is known better, so that many at once count as well. False, and nothing is
   * counted, where one of the keys is blocked.
   */
  begin(keys: readonly string[], now: Instant): boolean {
    if (keys.some((key) => this.#isBlocked(key, now))) return false;
    for (const key of keys) this.#fail(key, now);
    return true;
  }

  /** The attempt that began then was right after all. */
  succeeded(keys: readonly string[], began: Instant): void {
    for (const key of keys) {
      const failures = this.#failures.get(key);
      const at = failures?.at.indexOf(began) ?? -1;
      if (failures === undefined || at < 0) continue;
      failures.at.splice(at, 1);
      failures.blockedUntil = undefined;
      if (failures.at.length === 0) this.#failures.delete(key);
    }
  }

  #isBlocked(key: string, now: Instant): boolean {
    const until = this.#failures.get(key)?.blockedUntil;
    return until !== undefined && now < until;
  }

  #fail(key: string, now: Instant): void {
    const known = this.#failures.get(key);
    const recent = known?.at.filter((at) => now < after(at, WINDOW_MS)) ?? [];
    const at = [...recent, now];
    const blockedUntil = at.length >= MAX_FAILURES ? after(now, BLOCK_MS) : undefined;
    this.#failures.delete(key);
    this.#failures.set(key, { at, blockedUntil });
    if (this.#failures.size <= MAX_KEYS) return;
    for (const oldest of this.#failures.keys()) {
      this.#failures.delete(oldest);
      break;
    }
  }
}
