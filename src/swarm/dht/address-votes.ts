import { addressScope, familyOf, type PeerAddress } from "../../base/address.ts";
import type { AddressFamily } from "../../wire/compact-peers.ts";
import { ADDRESS_VOTES, MAX_ADDRESS_VOTES } from "./limits.ts";
import { placeOf } from "./scope.ts";

/** What our address is, by what those say who answer us (BEP 42): one vote a network, and a majority of the last ones. */
export class AddressVotes {
  readonly #family: AddressFamily;
  /** By network of the voter, the oldest first. */
  readonly #votes = new Map<string, string>();

  constructor(family: AddressFamily) {
    this.#family = family;
  }

  /** Somebody at `voter` sees us at `seen`. */
  vote(voter: PeerAddress, seen: string): void {
    const network = placeOf(voter).network;
    if (network === undefined || familyOf(seen) !== this.#family || addressScope(seen) !== "global") return;
    this.#votes.delete(network);
    this.#votes.set(network, seen);
    if (this.#votes.size > MAX_ADDRESS_VOTES) this.#votes.delete(this.#votes.keys().next().value!);
  }

  /** The address that most agree on; undefined where too few do. */
  get winner(): string | undefined {
    const counts = new Map<string, number>();
    for (const seen of this.#votes.values()) {
      const count = (counts.get(seen) ?? 0) + 1;
      if (count >= ADDRESS_VOTES && 2 * count > this.#votes.size) return seen;
      counts.set(seen, count);
    }
    return undefined;
  }
}
