import { addressScope, addressText, type PeerAddress } from "../../base/address.ts";
import { after, type Instant } from "../../base/time.ts";

/** So long nobody speaks to a liar's address. */
const BAN_MS = 600_000;
/** So many liars at one host, and nobody there is spoken to: its ports cost nothing. */
const MAX_LIARS = 3;
/** Bans that are remembered; the oldest are forgotten. */
const MAX_BANS = 1_000;

interface Ban {
  until: Instant;
  count: number;
}

/** Addresses of those who broke the rules. */
export class LiveBans {
  readonly #addresses = new Map<string, Ban>();
  readonly #hosts = new Map<string, Ban>();

  /** How many addresses were banned and are so still, or were lately. */
  get size(): number {
    return this.#addresses.size;
  }

  add(address: PeerAddress, now: Instant): void {
    note(this.#addresses, addressText(address), now);
    // Programs on this machine share its address.
    if (addressScope(address.host) !== "loopback") note(this.#hosts, address.host, now);
  }

  has(address: PeerAddress, now: Instant): boolean {
    const ban = this.#addresses.get(addressText(address));
    if (ban && now < ban.until) return true;
    const host = this.#hosts.get(address.host);
    return host !== undefined && now < host.until && host.count >= MAX_LIARS;
  }
}

function note(bans: Map<string, Ban>, key: string, now: Instant): void {
  const known = bans.get(key);
  const count = known && now < known.until ? known.count + 1 : 1;
  bans.delete(key);
  bans.set(key, { until: after(now, BAN_MS), count });
  if (bans.size > MAX_BANS) bans.delete(bans.keys().next().value!);
}
