import type { PeerAddress } from "../base/address.ts";
import type { Infohash } from "../base/ids.ts";
import type { ScrapeCounts } from "./tracker-reply.ts";

/** An announce as a tracker hears it (BEP 3, 15). Whose it is says the connection that brought it. */
export interface AnnounceQuestion {
  readonly infohash: Infohash;
  /** Where it listens; 0 for who only asks. */
  readonly port: number;
  /** It has everything: `left` is 0. */
  readonly isSeed: boolean;
  readonly event: "started" | "stopped" | "completed" | "none";
  /** Peers that are wanted; undefined for as many as is usual. */
  readonly numWant: number | undefined;
}

/** What a tracker tells who announced. */
export interface AnnounceAnswer {
  readonly intervalSeconds: number;
  readonly minIntervalSeconds: number;
  readonly counts: ScrapeCounts;
  /** Of both IP versions. */
  readonly peers: readonly PeerAddress[];
}

/** Swarms in one scrape: more do not fit one datagram (BEP 15: about 74). */
export const MAX_SCRAPED = 74;
