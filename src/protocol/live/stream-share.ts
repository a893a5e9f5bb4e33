import { TokenBucket } from "../../base/rate.ts";
import type { Instant } from "../../base/time.ts";
import { trimOldest } from "../../base/trim-oldest.ts";
import { MAX_PEERS_PER_NETWORK, STREAM_BURST_MS, STREAM_SHARE } from "./limits.ts";
import type { LivePeer } from "./peer.ts";

/** Maximum number of remembered networks: more than there are connections. */
const MAX_NETWORKS = 256;
/** A piece counts as at most this: the first one of an epoch may span a pause of the source. */
const MAX_PIECE_MS = 1_000;

/**
 * Limits how much of the stream one peer, and all peers of one public network, receive: a viewer needs each chunk once. Counted in playing
 * time of the stream, because its bitrate varies. Pushed chunks count, and are never refused.
 */
export class StreamShare {
  readonly #networks = new Map<string, TokenBucket>();

  /** Whether a chunk may be sent to a peer that asks for it. */
  permits(peer: LivePeer, now: Instant): boolean {
    return (
      peer.streamAllowance.waitMs(now) === 0 && (this.#networks.get(peer.network)?.waitMs(now) ?? 0) === 0
    );
  }

  /** Counts a chunk that is sent to a peer; `pieceMs` is the playing time of its piece. */
  sent(peer: LivePeer, pieceMs: number, stripes: number, now: Instant): void {
    const ms = Math.min(pieceMs, MAX_PIECE_MS) / stripes;
    peer.streamAllowance.spend(ms, now);
    if (peer.isLocal || peer.isSourceOrRelay) return;
    let network = this.#networks.get(peer.network);
    if (!network) {
      const most = MAX_PEERS_PER_NETWORK;
      network = new TokenBucket(most * 1_000 * STREAM_SHARE, most * STREAM_BURST_MS);
      this.#networks.set(peer.network, network);
      trimOldest(this.#networks, MAX_NETWORKS);
    }
    network.spend(ms, now);
  }
}
