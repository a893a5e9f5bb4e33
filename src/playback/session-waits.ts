import type { Instant } from "../base/time.ts";
import type { Clock } from "../runtime/contract.ts";
import { SOURCE_SILENT_MS } from "./diagnosis/buffering.ts";
import type { Buffering } from "./diagnosis/contract.ts";

/** Shorter waits are not reported: players buffer that much. */
const REPORTED_WAIT_MS = 1_500;
/** A reported reason stays at least this long, so that it can be read. */
const MIN_REPORT_MS = 3_000;
/** A player without requests for this time has enough data, or is paused. */
const PLAYER_IDLE_MS = 10_000;

/** Measures how long a session has waited for bytes, and reports why. */
export class SessionWaits {
  readonly #clock: Clock;
  /** The waits in progress, the longest first. */
  readonly #waits = new Set<{ readonly since: Instant }>();
  #reported: { readonly buffering: Buffering; readonly at: Instant } | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Runs `work` and counts its time as waiting. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    const wait = { since: this.#clock.now() };
    this.#waits.add(wait);
    try {
      return await work();
    } finally {
      this.#waits.delete(wait);
    }
  }

  /**
   * Returns why the player waits, or undefined if it does not. `explain` is called for a wait that is long enough to be
   * reported. `lastUse` is the time of the player's last request; `noDataSince` is when the newest data of a live stream
   * arrived, for a player at its edge.
   */
  buffering(
    lastUse: Instant,
    explain: (waitingMs: number) => Buffering,
    noDataSince?: Instant,
  ): Buffering | undefined {
    const now = this.#clock.now();
    const idleMs = now - lastUse;
    const [first] = this.#waits;
    const noDataMs = noDataSince === undefined || idleMs > PLAYER_IDLE_MS ? 0 : now - noDataSince;
    const waitingMs = Math.max(first ? now - first.since : 0, noDataMs >= SOURCE_SILENT_MS ? noDataMs : 0);
    const old = this.#reported;
    const isFresh = old !== undefined && now - old.at < MIN_REPORT_MS;
    if (waitingMs >= REPORTED_WAIT_MS) {
      const buffering = explain(waitingMs);
      const isSame = old?.buffering.code === buffering.code;
      if (isFresh && !isSame) return old.buffering;
      this.#reported = { buffering, at: isFresh && isSame ? old.at : now };
      return buffering;
    }
    if (isFresh) return old.buffering;
    this.#reported = undefined;
    return waitingMs === 0 && idleMs > PLAYER_IDLE_MS ? playerIsIdle(idleMs) : undefined;
  }
}

function playerIsIdle(idleMs: number): Buffering {
  const idle = Math.round(idleMs / 1000);
  return {
    code: "player",
    sentence: `The player has requested nothing for ${idle} s: its buffer is full, it is paused, or it is slow.`,
    numbers: { idle_seconds: idle },
  };
}
