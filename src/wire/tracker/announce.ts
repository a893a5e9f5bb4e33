import type { PeerAddress } from "../../base/address.ts";
import type { Infohash } from "../../base/ids.ts";
import { decodeUtf8 } from "../../base/utf8.ts";

/** An announce to a tracker (BEP 3, 15, 21). `uploaded`, `downloaded` and `left` are in bytes. */
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
  /** Identifies the peer to the tracker after an address change (BEP 7, `key`). */
  readonly key: number;
  readonly trackerId?: Uint8Array;
}

/** Peers of a swarm that a tracker counts: seeders and leechers (BEP 3, 15, 48). */
export interface SwarmCounts {
  readonly seeders: number;
  readonly leechers: number;
}

/** The response of a tracker to an announce. */
export type AnnounceReply =
  | {
      readonly ok: true;
      readonly peers: readonly PeerAddress[];
      readonly intervalSeconds: number;
      readonly minIntervalSeconds?: number;
      readonly trackerId?: Uint8Array;
      /** Warning of the tracker, for the log. */
      readonly warning?: string;
      /** Own address as the tracker sees it, canonical (BEP 24). */
      readonly externalAddress?: string;
      /** Size of the swarm, if the tracker reports it (BEP 3, 15). */
      readonly counts?: SwarmCounts;
    }
  | { readonly ok: false; readonly reason: string };

/** Scrape result of one swarm (BEP 15, 48). */
export interface ScrapeCounts extends SwarmCounts {
  /** Number of completed downloads. */
  readonly completed: number;
}

/** Peers read from one reply; an announce requests at most 200, and each becomes a candidate. */
export const MAX_REPLY_PEERS = 1000;
/** Shorter intervals would cause load on both sides; longer ones would make the peer list stale. */
const MIN_INTERVAL_SECONDS = 30;
const MAX_INTERVAL_SECONDS = 7200;
/** Interval if the tracker sends none; half an hour is usual. */
const DEFAULT_INTERVAL_SECONDS = 1800;

/** Limits the interval that a tracker requests to 30 s to 2 h; 30 min if it requests none. */
export function clampInterval(seconds: number | undefined): number {
  if (seconds === undefined || seconds <= 0) return DEFAULT_INTERVAL_SECONDS;
  return Math.min(Math.max(seconds, MIN_INTERVAL_SECONDS), MAX_INTERVAL_SECONDS);
}

/** Converts a text of a tracker to one short line for the log and the page. */
export function replyText(bytes: Uint8Array): string {
  const text = decodeUtf8(bytes.subarray(0, 1024)).replace(/[\p{C}\s]+/gu, " ");
  return text.trim().slice(0, 200);
}

/** Returns the peers whose port is not 0, at most {@link MAX_REPLY_PEERS}. */
export function usablePeers(peers: readonly PeerAddress[]): PeerAddress[] {
  return peers.filter(({ port }) => port !== 0).slice(0, MAX_REPLY_PEERS);
}
