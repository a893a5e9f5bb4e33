import { addressScope, type PeerAddress } from "../../base/address.ts";
import { equalBytes } from "../../base/bytes.ts";
import type { NodeContact } from "../../wire/dht/krpc.ts";
import { compareDistance, isNodeIdFor } from "../../wire/dht/node-id.ts";
import {
  INVALID_ID_NEAREST,
  LOOKUP_ALPHA,
  MAX_INVALID_ID_QUERIES,
  MAX_LOOKUP_QUERIES,
  MAX_NODES_PER_NETWORK,
  NEAREST,
} from "./limits.ts";
import { LookupList, type LookupNode } from "./lookup-list.ts";
import { isShareable, isUsable, placeOf } from "./scope.ts";

/**
 * An iterative lookup (BEP 5): queries the nearest known nodes in parallel, each of which returns nearer ones, until
 * the nearest have all answered. Nodes whose ids match their addresses (BEP 42) form a list of their own, so that
 * nodes with chosen ids cannot displace them; a few nearest of the others are queried, too. At most one node per
 * address is queried, and two per network.
 */
export class Lookup {
  readonly target: Uint8Array;
  readonly #ownId: Uint8Array;
  readonly #validIds: LookupList;
  readonly #invalidIds: LookupList;
  readonly #seen = new Set<string>();
  readonly #networks = new Map<string, number>();
  #waiting = 0;
  #queried = 0;
  #invalidIdsQueried = 0;

  /** `ownId` is excluded from the lookup. */
  constructor(target: Uint8Array, ownId: Uint8Array) {
    this.target = target;
    this.#ownId = ownId;
    this.#validIds = new LookupList(target);
    this.#invalidIds = new LookupList(target);
  }

  /** Number of queries sent. */
  get queries(): number {
    return this.#queried;
  }

  /** Adds a node from the routing table. */
  begin({ id, address }: NodeContact): void {
    this.#add(id, address);
  }

  /** Adds an address that may have a node. */
  beginAt(address: PeerAddress): void {
    this.#add(undefined, address);
  }

  /** Adds the nodes that another node returned. */
  learn(contacts: readonly NodeContact[], from: PeerAddress): void {
    const scope = addressScope(from.host);
    for (const { id, address } of contacts)
      if (isShareable(addressScope(address.host), scope)) this.#add(id, address);
  }

  /** Returns the next node to query; undefined if enough queries are pending, or no node is left. */
  next(): LookupNode | undefined {
    if (this.#waiting >= LOOKUP_ALPHA || this.#queried >= MAX_LOOKUP_QUERIES) return undefined;
    const valid = this.#validIds.nearest(NEAREST).find(isNew);
    const mayQueryInvalid = this.#invalidIdsQueried < MAX_INVALID_ID_QUERIES;
    const invalid = mayQueryInvalid ? this.#invalidIds.nearest(INVALID_ID_NEAREST).find(isNew) : undefined;
    const node = this.#choose(valid, invalid);
    if (!node) return undefined;
    node.state = "queried";
    this.#queried++;
    this.#waiting++;
    if (!node.hasValidId) this.#invalidIdsQueried++;
    return node;
  }

  /** The node has not answered in the expected time: another one may be queried meanwhile. */
  slow(node: LookupNode): void {
    if (node.state !== "queried") return;
    node.state = "slow";
    this.#waiting--;
  }

  failed(node: LookupNode): void {
    this.#settle(node, "failed");
  }

  /** The node answered. If its id was unknown or has changed, it is inserted at its new place. */
  answered(node: LookupNode, id: Uint8Array, token: Uint8Array | undefined): void {
    if (node.id !== undefined && compareDistance(this.target, node.id, id) === 0) {
      node.token = token;
      this.#settle(node, "answered");
      return;
    }
    this.#settle(node, "failed");
    const known = nodeOf(id, node.address);
    known.state = "answered";
    known.token = token;
    this.#listOf(known).add(known);
  }

  /** Whether no node is left to query or to wait for. */
  get isDone(): boolean {
    if (this.#queried >= MAX_LOOKUP_QUERIES && this.#waiting === 0) return true;
    const nearest = [...this.#validIds.nearest(NEAREST), ...this.#queryableInvalidIds()];
    return nearest.every(({ state }) => state === "answered");
  }

  /** Returns the nearest nodes that have answered: those with valid ids, then some others. */
  nearest(): LookupNode[] {
    return [...this.#validIds.answered(NEAREST), ...this.#invalidIds.answered(INVALID_ID_NEAREST)];
  }

  #queryableInvalidIds(): LookupNode[] {
    const nearest = this.#invalidIds.nearest(INVALID_ID_NEAREST);
    return this.#invalidIdsQueried < MAX_INVALID_ID_QUERIES
      ? nearest
      : nearest.filter((node) => !isNew(node));
  }

  /** Alternates between the two kinds: a node with a chosen id can always be nearer. */
  #choose(valid: LookupNode | undefined, invalid: LookupNode | undefined): LookupNode | undefined {
    if (!valid || !invalid) return valid ?? invalid;
    return this.#queried % 2 === 0 ? valid : invalid;
  }

  #add(id: Uint8Array | undefined, address: PeerAddress): void {
    if (id && equalBytes(id, this.#ownId)) return;
    const { scope, owner, network } = placeOf(address);
    if (!isUsable(scope) || address.port === 0 || this.#seen.has(owner)) return;
    const neighbours = network === undefined ? 0 : (this.#networks.get(network) ?? 0);
    if (neighbours >= MAX_NODES_PER_NETWORK) return;
    const node = nodeOf(id, address);
    if (!this.#listOf(node).add(node)) return;
    this.#seen.add(owner);
    if (network !== undefined) this.#networks.set(network, neighbours + 1);
  }

  #listOf({ hasValidId }: LookupNode): LookupList {
    return hasValidId ? this.#validIds : this.#invalidIds;
  }

  #settle(node: LookupNode, state: "answered" | "failed"): void {
    if (node.state === "queried") this.#waiting--;
    node.state = state;
  }
}

function nodeOf(id: Uint8Array | undefined, address: PeerAddress): LookupNode {
  // An address without an id comes from this engine or its user, so it is trusted.
  const hasValidId = id === undefined || isNodeIdFor(id, address.host);
  return { id, address, hasValidId, state: "new", token: undefined };
}

function isNew({ state }: LookupNode): boolean {
  return state === "new";
}
