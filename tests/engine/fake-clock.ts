import { after, type Instant, instant, type UnixSeconds } from "../../src/base/time.ts";
import type { Clock } from "../../src/runtime/contract.ts";

/** A clock that only the test advances. */
export class FakeClock implements Clock {
  #now = instant(1000);
  #timers: { at: Instant; run: () => void }[] = [];

  now(): Instant {
    return this.#now;
  }

  unixSeconds(): UnixSeconds {
    return Math.floor(1_700_000_000 + this.#now / 1000) as UnixSeconds;
  }

  at(at: Instant, run: () => void): () => void {
    const timer = { at, run };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  /** The number of pending timers. */
  get waiting(): number {
    return this.#timers.length;
  }

  /** Advances by `ms`, runs due timers in order, and lets promises settle before, between and after them. */
  async advance(ms: number): Promise<void> {
    const end = after(this.#now, ms);
    await settled();
    for (;;) {
      const next = this.#timers.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
      if (!next) break;
      this.#timers = this.#timers.filter((other) => other !== next);
      if (next.at > this.#now) this.#now = next.at;
      next.run();
      await settled();
    }
    this.#now = end;
    await settled();
  }
}

/** Waits until promises that need no timer have settled. */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < 4; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
}
