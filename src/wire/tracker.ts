import type { PeerAddress } from "../base/address.ts";
import type { Infohash } from "../base/ids.ts";

/** One announce to one tracker (BEP 3, 15, 21). Totals in bytes. */
export interface AnnounceRequest {
  readonly url: string;
  readonly infohash: Infohash;
  readonly peerId: Uint8Array;
  readonly port: number;
  readonly uploaded: number;
  readonly downloaded: number;
  readonly left: number;
  readonly event: "started" | "stopped" | "completed" | "none" | "paused";
  readonly numWant: number;
  /** Keeps one identity towards a tracker over address changes (BEP 7, `key`). */
  readonly key: number;
  readonly trackerId?: Uint8Array;
}

/** Peers that a tracker knows of in one swarm: those with everything, and the others (BEP 3, 15, 48). */
export interface SwarmCounts {
  readonly seeders: number;
  readonly leechers: number;
}

/** How a tracker answered; times in seconds. */
export type AnnounceReply =
  | {
      readonly ok: true;
      readonly peers: readonly PeerAddress[];
      readonly intervalSeconds: number;
      readonly minIntervalSeconds?: number;
      readonly trackerId?: Uint8Array;
      /** The tracker's own words, for the log. */
      readonly warning?: string;
      /** Our own address as the tracker sees it, canonical (BEP 24). */
      readonly externalAddress?: string;
      /** How large the swarm is, where the tracker says so (BEP 3, 15). */
      readonly counts?: SwarmCounts;
    }
  | { readonly ok: false; readonly reason: string };
