import type { PeerAddress } from "../base/address.ts";
import { decodeUtf8 } from "../base/utf8.ts";
import type { SwarmCounts } from "./tracker.ts";

/** What a scrape says of one swarm (BEP 15, 48). */
export interface ScrapeCounts extends SwarmCounts {
  /** How often the content was completed. */
  readonly completed: number;
}

/** Peers read from one reply; we ask for 200 at most, and each becomes a candidate. */
export const MAX_REPLY_PEERS = 1000;
/** Half a minute: a tracker that asks for less would make us its load. Two hours: one that asks for more would lose us. */
const MIN_INTERVAL_SECONDS = 30;
const MAX_INTERVAL_SECONDS = 7200;
/** Where a tracker names none (BEP 3 leaves it open; half an hour is usual). */
const DEFAULT_INTERVAL_SECONDS = 1800;

/** An interval that a tracker asks for, within what we bear, in seconds. */
export function clampInterval(seconds: number | undefined): number {
  if (seconds === undefined || seconds <= 0) return DEFAULT_INTERVAL_SECONDS;
  return Math.min(Math.max(seconds, MIN_INTERVAL_SECONDS), MAX_INTERVAL_SECONDS);
}

/** A tracker's own words, as one short line for the log and the page. */
export function replyText(bytes: Uint8Array): string {
  const text = decodeUtf8(bytes.subarray(0, 1024)).replace(/[\p{C}\s]+/gu, " ");
  return text.trim().slice(0, 200);
}

/** Those peers that can be connected to, at most {@link MAX_REPLY_PEERS}. */
export function usablePeers(peers: readonly PeerAddress[]): PeerAddress[] {
  return peers.filter(({ port }) => port !== 0).slice(0, MAX_REPLY_PEERS);
}
