import { addressText, type PeerAddress } from "../../base/address.ts";
import type { Infohash } from "../../base/ids.ts";
import type { Instant } from "../../base/time.ts";

/** Announces of all machines of a local network; more come from forged senders, or from a network where trackers work
 * better. */
const MAX_KNOWN = 2_000;
/** A machine may run several engines; announces beyond this are ignored. */
const MAX_PER_HOST = 250;
/** Announces are sent every five minutes (BEP 14): a neighbour that misses two has left. */
const EXPIRY_MS = 11 * 60_000;

interface Known {
  readonly infohash: Infohash;
  readonly address: PeerAddress;
  announcedAt: Instant;
}

/** Recent announces of the local network, so that a swarm joined later finds its peers at once. */
export class Neighbours {
  /** Least recently announced first. */
  readonly #known = new Map<string, Known>();
  readonly #perHost = new Map<string, number>();

  /** Records that `address` is in a swarm; returns true if it is new and within the limits. */
  announced(infohash: Infohash, address: PeerAddress, now: Instant): boolean {
    this.#expire(now);
    const key = `${infohash} ${addressText(address)}`;
    const known = this.#known.get(key);
    if (known) {
      this.#known.delete(key);
      this.#known.set(key, { ...known, announcedAt: now });
      return false;
    }
    const ofHost = this.#perHost.get(address.host) ?? 0;
    if (this.#known.size >= MAX_KNOWN || ofHost >= MAX_PER_HOST) return false;
    this.#known.set(key, { infohash, address, announcedAt: now });
    this.#perHost.set(address.host, ofHost + 1);
    return true;
  }

  /** Returns the neighbours in a swarm. */
  of(infohash: Infohash, now: Instant): PeerAddress[] {
    this.#expire(now);
    return [...this.#known.values()]
      .filter((known) => known.infohash === infohash)
      .map(({ address }) => address);
  }

  #expire(now: Instant): void {
    for (const [key, { address, announcedAt }] of this.#known) {
      if (now - announcedAt < EXPIRY_MS) return;
      this.#known.delete(key);
      const count = this.#perHost.get(address.host)! - 1;
      if (count > 0) this.#perHost.set(address.host, count);
      else this.#perHost.delete(address.host);
    }
  }
}
