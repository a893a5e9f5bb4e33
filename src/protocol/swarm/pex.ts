import { addressText, type PeerAddress } from "../../base/address.ts";
import { after, type Instant } from "../../base/time.ts";
import type { PexMessage, PexPeer } from "../../wire/peer/pex-message.ts";
import { MAX_PEX_PEERS, PEX_INTERVAL_MS } from "./limits.ts";

/** Messages accepted above one a minute: clocks differ, and the first message may follow the handshake immediately. */
const SPARE_MESSAGES = 2;
/** A message is allowed per this time: a little less than a minute, because timers are inexact. */
const ALLOWED_INTERVAL_MS = 0.75 * PEX_INTERVAL_MS;
/** Consecutive ignored messages after which the connection is closed. */
const MAX_IGNORED = 20;

/** PEX with one peer, in both directions (BEP 11). Not used for private content (BEP 27). */
export class Pex {
  readonly #announced = new Map<string, PeerAddress>();
  #sendAt: Instant | undefined;
  #allowance = 1 + SPARE_MESSAGES;
  #lastReceived: Instant | undefined;
  #ignored = 0;

  /** When `delta` is due; undefined: now. */
  nextWake(): Instant | undefined {
    return this.#sendAt;
  }

  /**
   * Returns the message due at `now`, if any: at most 50 added and 50 dropped peers (BEP 11); the rest follow in the next
   * message. `connected` are all peers with a known listening address; the receiver (`to`) is left out.
   */
  delta(connected: readonly PexPeer[], to: PeerAddress | undefined, now: Instant): PexMessage | undefined {
    if (this.#sendAt !== undefined && now < this.#sendAt) return undefined;
    this.#sendAt = after(now, PEX_INTERVAL_MS);
    const receiver = to && addressText(to);
    const present = new Set<string>();
    const added: PexPeer[] = [];
    for (const peer of connected) {
      const key = addressText(peer.address);
      present.add(key);
      if (key === receiver || this.#announced.has(key) || added.length >= MAX_PEX_PEERS) continue;
      this.#announced.set(key, peer.address);
      added.push(peer);
    }
    const dropped: PeerAddress[] = [];
    for (const [key, address] of this.#announced) {
      if (present.has(key) || dropped.length >= MAX_PEX_PEERS) continue;
      this.#announced.delete(key);
      dropped.push(address);
    }
    return added.length + dropped.length === 0 ? undefined : { added, dropped };
  }

  /**
   * Limits the rate of received messages: `take` it (its first {@link MAX_PEX_PEERS} added peers), `ignore` it because
   * messages are too frequent, or `close` the connection because they have been so repeatedly.
   */
  limit(now: Instant): "take" | "ignore" | "close" {
    if (this.#lastReceived !== undefined) {
      const earned = (now - this.#lastReceived) / ALLOWED_INTERVAL_MS;
      this.#allowance = Math.min(1 + SPARE_MESSAGES, this.#allowance + earned);
    }
    this.#lastReceived = now;
    if (this.#allowance >= 1) {
      this.#allowance--;
      this.#ignored = 0;
      return "take";
    }
    return ++this.#ignored > MAX_IGNORED ? "close" : "ignore";
  }
}
