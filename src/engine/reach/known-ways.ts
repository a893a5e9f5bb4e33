import { addressText, type PeerAddress } from "../../base/address.ts";
import type { Way } from "./encrypted-net.ts";

/** More than the candidates of one swarm. */
const MAX_KNOWN = 4_000;

/** Which way a peer answered, where it was not the first one: the next call saves the detour. */
export class KnownWays {
  readonly #ways = new Map<string, Way>();

  /** `usual`, with the way that this peer answered last in front. */
  order(address: PeerAddress, usual: readonly Way[]): readonly Way[] {
    const known = this.#ways.get(addressText(address));
    return known === undefined || !usual.includes(known)
      ? usual
      : [known, ...usual.filter((way) => way !== known)];
  }

  /** A peer has answered this way. */
  answered(address: PeerAddress, way: Way, usual: readonly Way[]): void {
    const key = addressText(address);
    this.#ways.delete(key);
    if (way === usual[0]) return;
    this.#ways.set(key, way);
    const [oldest] = this.#ways.keys();
    if (oldest !== undefined && this.#ways.size > MAX_KNOWN) this.#ways.delete(oldest);
  }
}
