import { addressScope, addressText, familyOf, type PeerAddress } from "../../base/address.ts";
import type { Random } from "../../base/random.ts";
import type { Instant } from "../../base/time.ts";
import type { AddressFamily } from "../../wire/compact-peers.ts";
import { isNodeIdFor, nodeIdFor } from "../../wire/dht/node-id.ts";
import { type DhtFamilyState, MAX_SAVED_NODES } from "../../wire/dht/saved-nodes.ts";
import {
  ADDRESS_VOTES,
  MAX_ADDRESS_VOTES,
  MAX_NEW_ADDRESSES,
  UNREACHABLE_MS,
  UNREACHABLE_QUERIES,
} from "./limits.ts";
import { RoutingTable } from "./routing-table.ts";
import { placeOf } from "./scope.ts";

/** An address that may have a node. */
export interface NewAddress {
  readonly address: PeerAddress;
  isQueried: boolean;
}

/** The node of one IP version (BEP 32), which has its own id and routing table. */
export class Family {
  readonly family: AddressFamily;
  /** Addresses reported by the user, a link or a peer, by text, until a ping to them has succeeded or failed. */
  readonly reported = new Map<string, NewAddress>();
  /** Addresses that sent a query. They may be forged, and must not displace reported addresses. */
  readonly queriers = new Map<string, NewAddress>();
  /** Consecutive unanswered queries. */
  #unanswered = 0;
  #failedAt: Instant | undefined;
  readonly #random: Random;
  readonly #votes: AddressVotes;
  #table: RoutingTable;

  constructor(family: AddressFamily, saved: DhtFamilyState | undefined, random: Random) {
    this.family = family;
    this.#random = random;
    this.#votes = new AddressVotes(family);
    this.#table = new RoutingTable(saved?.id ?? nodeIdFor(undefined, random));
    for (const node of saved?.nodes ?? []) this.#table.addUnverified(node);
  }

  get table(): RoutingTable {
    return this.#table;
  }

  get id(): Uint8Array {
    return this.#table.ownId;
  }

  /** Whether any address is known that could be queried. */
  get hasNodes(): boolean {
    return this.#table.size > 0 || this.reported.size > 0;
  }

  /** Whether no node of this family ever answers: this machine seems to have no route to its network. */
  isUnreachable(now: Instant): boolean {
    const isSilent = this.#unanswered >= UNREACHABLE_QUERIES && this.#table.provenCount === 0;
    return isSilent && this.#failedAt !== undefined && now - this.#failedAt < UNREACHABLE_MS;
  }

  /** A query was answered. */
  answered(): void {
    this.#unanswered = 0;
  }

  /** A query was not answered. */
  unanswered(now: Instant): void {
    // Starts a new period after the last one, because a route may have appeared.
    if (!this.isUnreachable(now)) this.#failedAt = now;
    this.#unanswered++;
  }

  /** Adds an address that may have a node. */
  addReported(address: PeerAddress): void {
    // A peer that knows a node may also show that the network is reachable again.
    this.#unanswered = 0;
    remember(this.reported, address);
  }

  /** Adds an address that sent a query. */
  addQuerier(address: PeerAddress): void {
    remember(this.queriers, address);
  }

  /** A node at `voter` sees this node at `seen` (BEP 42). If a majority agrees on an address that does not fit the node id,
   * changes the id and returns the address. */
  vote(voter: PeerAddress, seen: string, now: Instant): string | undefined {
    this.#votes.vote(voter, seen);
    const winner = this.#votes.winner;
    if (winner === undefined || isNodeIdFor(this.id, winner)) return undefined;
    const old = this.#table;
    this.#table = new RoutingTable(nodeIdFor(winner, this.#random));
    for (const node of old.nodes()) {
      if (node.answeredAt === undefined) this.#table.addUnverified(node);
      else this.#table.answered(node, node.roundTripMs ?? 0, now);
    }
    return winner;
  }

  /** The state to save for the next run; nodes that have answered come first. */
  state(): DhtFamilyState {
    const nodes = [...this.#table.nodes()].filter(({ failures }) => failures < 2);
    nodes.sort((a, b) => Number(b.answeredAt !== undefined) - Number(a.answeredAt !== undefined));
    return { family: this.family, id: this.id, nodes: nodes.slice(0, MAX_SAVED_NODES) };
  }
}

/** Finds this node's external address from the votes of nodes that answer (BEP 42): one vote per network, by majority. */
class AddressVotes {
  readonly #family: AddressFamily;
  /** By network of the voter, oldest first. */
  readonly #votes = new Map<string, string>();

  constructor(family: AddressFamily) {
    this.#family = family;
  }

  /** A node at `voter` sees this node at `seen`. */
  vote(voter: PeerAddress, seen: string): void {
    const network = placeOf(voter).network;
    if (network === undefined || familyOf(seen) !== this.#family || addressScope(seen) !== "global") return;
    this.#votes.delete(network);
    this.#votes.set(network, seen);
    if (this.#votes.size > MAX_ADDRESS_VOTES) this.#votes.delete(this.#votes.keys().next().value!);
  }

  /** The address with a majority of the votes; undefined without one. */
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

/** Adds an address; beyond the limit the oldest is dropped. */
function remember(addresses: Map<string, NewAddress>, address: PeerAddress): void {
  const key = addressText(address);
  if (addresses.has(key)) return;
  addresses.set(key, { address, isQueried: false });
  if (addresses.size > MAX_NEW_ADDRESSES) addresses.delete(addresses.keys().next().value!);
}
