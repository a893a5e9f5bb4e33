import type { Instant } from "../base/time.ts";
import type { Clock } from "../runtime/contract.ts";
import type { HoldUp } from "./diagnosis/contract.ts";
import { SOURCE_SILENT_MS } from "./diagnosis/hold-up.ts";

/** Shorter waits nobody notices: players have that much in store. */
const NOTICED_MS = 1_500;
/** What was told is told so long at least: a sentence that changes before it is read says nothing. */
const TOLD_MS = 3_000;
/** A player that has asked for nothing for so long has what it wants, or is paused. */
const PLAYER_IDLE_MS = 10_000;

/** How long a session has been waiting for bytes, and what is told of it. */
export class SessionWaits {
  readonly #clock: Clock;
  readonly #since = new Set<{ readonly at: Instant }>();
  #told: { readonly holdUp: HoldUp; readonly at: Instant } | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Counts as waiting while `work` goes on. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    const wait = { at: this.#clock.now() };
    this.#since.add(wait);
    try {
      return await work();
    } finally {
      this.#since.delete(wait);
    }
  }

  /**
   * What is to be told now. `explain` is asked where a wait is long enough to be noticed; `lastUse` is when the player last
   * asked for anything; `stillSince` is when the last of a live stream came that is watched at its edge.
   */
  holdUp(lastUse: Instant, explain: (waitingMs: number) => HoldUp, stillSince?: Instant): HoldUp | undefined {
    const now = this.#clock.now();
    const [first] = this.#since;
    const stillMs = stillSince === undefined || now - lastUse > PLAYER_IDLE_MS ? 0 : now - stillSince;
    const waitingMs = Math.max(first ? now - first.at : 0, stillMs >= SOURCE_SILENT_MS ? stillMs : 0);
    const old = this.#told;
    const isFresh = old !== undefined && now - old.at < TOLD_MS;
    if (waitingMs >= NOTICED_MS) {
      const holdUp = explain(waitingMs);
      if (isFresh && old.holdUp.code !== holdUp.code) return old.holdUp;
      this.#told = { holdUp, at: old?.holdUp.code === holdUp.code && isFresh ? old.at : now };
      return holdUp;
    }
    if (isFresh) return old.holdUp;
    this.#told = undefined;
    return waitingMs === 0 && now - lastUse > PLAYER_IDLE_MS ? ofPlayer(now - lastUse) : undefined;
  }
}

function ofPlayer(idleMs: number): HoldUp {
  const idle = Math.round(idleMs / 1000);
  return {
    code: "player",
    sentence: `Nothing is waited for here: the player has asked for nothing for ${idle} s. It has enough, is paused, or is slow.`,
    numbers: { idle_seconds: idle },
  };
}
