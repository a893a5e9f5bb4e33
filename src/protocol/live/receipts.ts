import { TokenBucket } from "../../base/rate.ts";
import type { Instant } from "../../base/time.ts";
import {
  UNCONFIRMED_MS,
  UNCONFIRMED_NETWORK_MS,
  UNCONFIRMED_NETWORK_SHARE,
  UNCONFIRMED_SHARE,
} from "./limits.ts";
import type { LivePeer } from "./peer.ts";

/** Maximum number of remembered networks: more than there are connections. */
const MAX_NETWORKS = 256;

/** Limits what peers receive that never show a receipt. A receipt is a WIN that shows a chunk sent to the peer, or is past it. */
export class Receipts {
  readonly #bytesPerSecond: number;
  /** What networks may still receive, of which peers have left without a receipt. */
  readonly #networks = new Map<string, TokenBucket>();

  /** `bytesPerSecond` is the rate of the stream. */
  constructor(bytesPerSecond: number) {
    this.#bytesPerSecond = bytesPerSecond;
  }

  /** Whether more of the stream may be sent to a peer. */
  permits(peer: LivePeer, now: Instant): boolean {
    const allowedMs = UNCONFIRMED_MS + UNCONFIRMED_SHARE * (now - peer.confirmedAt);
    if (1_000 * peer.unconfirmedBytes >= allowedMs * this.#bytesPerSecond) return false;
    return peer.hasConfirmed || (this.#networks.get(peer.network)?.waitMs(now) ?? 0) === 0;
  }

  /** A peer has left: what it never confirmed counts for its network. */
  left({ network, unconfirmedBytes }: LivePeer, now: Instant): void {
    if (unconfirmedBytes === 0) return;
    const rate = this.#bytesPerSecond;
    const bucket =
      this.#networks.get(network) ??
      new TokenBucket(UNCONFIRMED_NETWORK_SHARE * rate, (UNCONFIRMED_NETWORK_MS / 1_000) * rate);
    bucket.spend(unconfirmedBytes, now);
    this.#networks.delete(network);
    this.#networks.set(network, bucket);
    if (this.#networks.size > MAX_NETWORKS) this.#networks.delete(this.#networks.keys().next().value!);
  }
}
