import { after, type Instant } from "../base/time.ts";

/** After this many failures within a window, further attempts are refused until the block ends. */
const MAX_FAILURES = 5;
const WINDOW_MS = 60_000;
const BLOCK_MS = 60_000;
/** Limit of remembered clients and accounts. Each costs a slow password hash, so an attacker cannot evict them quickly. */
const MAX_KEYS = 10_000;

interface Failures {
  readonly at: Instant[];
  blockedUntil: Instant | undefined;
}

/** Limits the password attempts of each client and for each account. */
export class AttemptLimit {
  /** The least recently changed first. */
  readonly #failures = new Map<string, Failures>();

  /**
   * Counts an attempt as failed until {@link succeeded}, so that concurrent attempts count too. Returns false, without
   * counting, if one of the keys is blocked.
   */
  begin(keys: readonly string[], now: Instant): boolean {
    if (keys.some((key) => this.#isBlocked(key, now))) return false;
    for (const key of keys) this.#fail(key, now);
    return true;
  }

  /** Uncounts the attempt that began at `began`. */
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
