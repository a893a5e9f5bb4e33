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
    }
  | { readonly ok: false; readonly reason: string };
