import type { PeerAddress } from "../../base/address.ts";
import type { Infohash } from "../../base/ids.ts";
import type { ScrapeCounts } from "./announce.ts";

/** An announce that the tracker server received (BEP 3, 15). The address of the peer is that of the connection. */
export interface TrackerServerAnnounce {
  readonly infohash: Infohash;
  /** Listening port; 0 if the peer only requests peers. */
  readonly port: number;
  /** The peer has the whole content: `left` is 0. */
  readonly isSeed: boolean;
  readonly event: "started" | "stopped" | "completed" | "none";
  /** Number of peers requested; undefined for the default. */
  readonly numWant: number | undefined;
}

/** The response of the tracker server to an announce. */
export interface TrackerServerResponse {
  readonly intervalSeconds: number;
  readonly minIntervalSeconds: number;
  readonly counts: ScrapeCounts;
  /** Peers of both IP versions. */
  readonly peers: readonly PeerAddress[];
}

/** Infohashes in one scrape; more do not fit into one datagram (BEP 15: about 74). */
export const MAX_SCRAPE_INFOHASHES = 74;
