import type { Infohash } from "../base/ids.ts";
import type { LogLine } from "../base/log.ts";
import type { UnixSeconds } from "../base/time.ts";

/** Speeds of one moment, in bytes per second. */
export interface SpeedSample {
  readonly at: UnixSeconds;
  /** Of all transfers together. */
  readonly down: number;
  readonly up: number;
  readonly transfers: readonly { readonly infohash: Infohash; readonly down: number; readonly up: number }[];
}

/**
 * `engine`: what a stream of the operator shows. `devices`: a stream of any client about devices of the network. The number of both is
 * limited. `session`: a stream of one player, limited by the sessions.
 */
export type TickKind = "engine" | "devices" | "session";

/** The clock and the memory of the live data that the operator sees. */
export interface Activity {
  /**
   * Returns a stream of ticks: the first at once, then one a second. All streams tick at the same moments, with the same number.
   * A reader that does not pull gets no ticks. Throws `too_many` for `engine` and `devices`.
   */
  ticks(kind: TickKind): ReadableStream<number>;
  /** The samples of the last hour, oldest first. */
  readonly speeds: readonly SpeedSample[];
  /** Returns the log lines after number `after`, oldest first, as far as they are still known. */
  logAfter(after: number): readonly LogLine[];
}
