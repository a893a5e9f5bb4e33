import { addressText, type PeerAddress } from "../base/address.ts";
import { after, type Instant } from "../base/time.ts";
import type { PexMessage, PexPeer } from "../wire/pex-message.ts";
import { MAX_PEX_PEERS, PEX_INTERVAL_MS } from "./limits.ts";

/** Messages a peer may send faster than one a minute before they are ignored: clocks differ, first ones come early. */
const SPARE_MESSAGES = 2;
/** A peer is due one message in this time: a little under a minute, as timers are not exact. */
const ADMIT_INTERVAL_MS = 0.75 * PEX_INTERVAL_MS;
/** Messages ignored in a row after which a peer is plainly abusing us. */
const MAX_IGNORED = 20;

/** PEX with one peer, both ways. Not to be made for private content (BEP 27). */
export class Pex {
  readonly #told = new Map<string, PeerAddress>();
  #sendAt: Instant | undefined;
  #allowance = 1 + SPARE_MESSAGES;
  #lastReceived: Instant | undefined;
  #ignored = 0;

  /** When `delta` wants to be called; undefined: now. */
  nextWake(): Instant | undefined {
    return this.#sendAt;
  }

  /**
   * The message due at `now`, if one is: at most 50 added and 50 dropped (BEP 11), the rest next minute. `connected`
   * is everybody whose listening address we know, and may hold the receiver (`to`), whom we leave out.
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
      if (key === receiver || this.#told.has(key) || added.length >= MAX_PEX_PEERS) continue;
      this.#told.set(key, peer.address);
      added.push(peer);
    }
    const dropped: PeerAddress[] = [];
    for (const [key, address] of this.#told) {
      if (present.has(key) || dropped.length >= MAX_PEX_PEERS) continue;
      this.#told.delete(key);
      dropped.push(address);
    }
    return added.length + dropped.length === 0 ? undefined : { added, dropped };
  }

  /**
   * Judges a message that came: `take` it (its first {@link MAX_PEX_PEERS} added), `ignore` it because it comes too
   * often, or `close` the connection because that has happened again and again.
   */
  judge(now: Instant): "take" | "ignore" | "close" {
    if (this.#lastReceived !== undefined) {
      const earned = (now - this.#lastReceived) / ADMIT_INTERVAL_MS;
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
