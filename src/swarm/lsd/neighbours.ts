import { addressText, type PeerAddress } from "../../base/address.ts";
import type { Infohash } from "../../base/ids.ts";
import type { Instant } from "../../base/time.ts";

/** A household's machines and what each is in; more are of one who invents them, or of a network where trackers serve better. */
const MAX_KNOWN = 2_000;
/** One machine may run several engines; what it says beyond this costs only itself. */
const MAX_PER_HOST = 250;
/** Announces come every five minutes (BEP 14): who missed two of them has left. */
const FORGET_MS = 11 * 60_000;

interface Known {
  readonly infohash: Infohash;
  readonly address: PeerAddress;
  heardAt: Instant;
}

/** Who of the local network is in which swarm, by what they announced of late. So a swarm that is joined later finds them at once. */
export class Neighbours {
  /** In the order in which they were last heard. */
  readonly #known = new Map<string, Known>();
  readonly #perHost = new Map<string, number>();

  /** Notes that `address` is in a swarm; true where that is news. False as well where there is no room for it. */
  heard(infohash: Infohash, address: PeerAddress, now: Instant): boolean {
    this.#forget(now);
    const key = `${infohash} ${addressText(address)}`;
    const known = this.#known.get(key);
    if (known) {
      this.#known.delete(key);
      this.#known.set(key, { ...known, heardAt: now });
      return false;
    }
    const ofHost = this.#perHost.get(address.host) ?? 0;
    if (this.#known.size >= MAX_KNOWN || ofHost >= MAX_PER_HOST) return false;
    this.#known.set(key, { infohash, address, heardAt: now });
    this.#perHost.set(address.host, ofHost + 1);
    return true;
  }

  /** Those heard of late in a swarm. */
  of(infohash: Infohash, now: Instant): PeerAddress[] {
    this.#forget(now);
    return [...this.#known.values()]
      .filter((known) => known.infohash === infohash)
      .map(({ address }) => address);
  }

  #forget(now: Instant): void {
    for (const [key, { address, heardAt }] of this.#known) {
      if (now - heardAt < FORGET_MS) return;
      this.#known.delete(key);
      const left = this.#perHost.get(address.host)! - 1;
      if (left > 0) this.#perHost.set(address.host, left);
      else this.#perHost.delete(address.host);
    }
  }
}
