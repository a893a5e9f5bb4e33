import { sleep } from "../../async/sleep.ts";
import type { Log } from "../../base/log.ts";
import type { Instant } from "../../base/time.ts";
import type { Outbound } from "../../outbound/outbound.ts";
import type { Clock } from "../../runtime/contract.ts";

/** A source of transport packets. It delivers only when its reader calls `next`. */
export interface LiveFeed {
  /** Resolves with whole transport packets, at least one; undefined at the end of the source. Call it again only after
   * it has resolved. */
  next(): Promise<Uint8Array | undefined>;
  /** Releases everything; a pending `next` resolves with undefined, or rejects. */
  close(): void;
}

/** Counters and state of a source, updated while it is read. */
export interface LiveInputFacts {
  /** Bytes of packets that were delivered. */
  bytes: number;
  /** Bytes that are not part of a packet. */
  skippedBytes: number;
  /** Bytes dropped because the reader did not take them in time. */
  droppedBytes: number;
  /** Datagrams from a sender other than the current one. */
  foreignDatagrams: number;
  /** RTP datagrams that were lost, or arrived too late. */
  lostDatagrams: number;
  /** How often the source was opened, reopened or looped. */
  starts: number;
  /** When the last packets arrived. */
  lastAt: Instant | undefined;
  /** The last error, as a sentence for the user. */
  problem: string | undefined;
}

/** What feeds that read from the web depend on. */
export interface WebFeedDependencies {
  readonly clock: Clock;
  readonly outbound: Pick<Outbound, "open">;
  readonly log: Log;
}

/** Runs ffmpeg with these arguments: `input` is its standard input, the result its standard output, which errors with its last message
 * if it fails. */
export type RunEncoder = (
  args: readonly string[],
  input: ReadableStream<Uint8Array>,
  signal: AbortSignal,
) => ReadableStream<Uint8Array>;

/** Returns the counters of a source that has not started. */
export function noFacts(): LiveInputFacts {
  const counts = { bytes: 0, skippedBytes: 0, droppedBytes: 0, foreignDatagrams: 0, lostDatagrams: 0 };
  return { ...counts, starts: 0, lastAt: undefined, problem: undefined };
}

/** Delays between attempts: 0.5 s, then doubled each time, up to 10 s. */
const FIRST_RETRY_MS = 500;
const MAX_RETRY_MS = 10_000;

/** Waits before the next attempt, after the `failures`-th one in a row. Logs the 1st, 2nd, 4th, 8th … of them: a source
 * that is offline for days must not fill the log. */
export async function waitForRetry(
  { clock, log }: Pick<WebFeedDependencies, "clock" | "log">,
  reason: string | undefined,
  failures: number,
  signal: AbortSignal,
): Promise<void> {
  const retryInMs = Math.min(MAX_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(10, failures - 1));
  if ((failures & (failures - 1)) === 0)
    log.warn("source interrupted, reconnecting", { reason, attempts: failures, retryInMs });
  await sleep(clock, retryInMs, signal);
}
