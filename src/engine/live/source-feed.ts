import type { Log } from "../../base/log.ts";
import { after, type Instant } from "../../base/time.ts";
import type { Outbound } from "../../outbound/outbound.ts";
import type { Clock } from "../../runtime/contract.ts";

/** Where packets come from: asked for more, it gives some. */
export interface LiveFeed {
  /** Whole transport packets, at least one; undefined where the source has ended. Not asked again before it has answered. */
  next(): Promise<Uint8Array | undefined>;
  /** Lets everything go; a `next` that waits answers undefined, or rejects. */
  close(): void;
}

/** What is known of a source, as it counts on. */
export interface LiveInputFacts {
  /** Bytes of packets that were given out. */
  bytes: number;
  /** Bytes that were no packets. */
  skippedBytes: number;
  /** Bytes that came and had to be dropped, since nobody took them in time. */
  droppedBytes: number;
  /** Datagrams that another sender than the first one sent. */
  foreignDatagrams: number;
  /** Datagrams of RTP that are missing, or came too late. */
  lostDatagrams: number;
  /** How often the source was reached (again), or begun (again). */
  beginnings: number;
  /** When something came last. */
  lastAt: Instant | undefined;
  /** What went wrong last, for people. */
  problem: string | undefined;
}

/** What reading from the web needs. */
export interface WebFeedParts {
  readonly clock: Clock;
  readonly outbound: Pick<Outbound, "open">;
  readonly log: Log;
}

/** Counters of a source that has not begun. */
export function noFacts(): LiveInputFacts {
  const counts = { bytes: 0, skippedBytes: 0, droppedBytes: 0, foreignDatagrams: 0, lostDatagrams: 0 };
  return { ...counts, beginnings: 0, lastAt: undefined, problem: undefined };
}

/** Resolves at `at`, or with the signal. */
export function pauseUntil(clock: Clock, at: Instant, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted || at <= clock.now()) return resolve();
    const done = () => {
      cancel();
      signal.removeEventListener("abort", done);
      resolve();
    };
    const cancel = clock.at(at, done);
    signal.addEventListener("abort", done, { once: true });
  });
}

/** The same after `ms`. */
export function pauseFor(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return pauseUntil(clock, after(clock.now(), ms), signal);
}

/** Says that a source broke off for the `failures`-th time in a row. Of a source that is away for days each attempt would fill the log:
 * only the 1st, 2nd, 4th, 8th … is said. */
export function sayBrokenOff(
  log: Log,
  reason: string | undefined,
  failures: number,
  againInMs: number,
): void {
  if ((failures & (failures - 1)) === 0)
    log.warn("the source broke off", { reason, attempts: failures, againInMs });
}
