import { addressScope, type PeerAddress } from "../../base/address.ts";
import { equalBytes } from "../../base/bytes.ts";
import { compareDistance, fitsAddress } from "../../wire/dht-id.ts";
import type { NodeContact } from "../../wire/krpc.ts";
import {
  LOOKUP_ALPHA,
  MAX_LOOKUP_QUERIES,
  MAX_NODES_PER_NETWORK,
  MAX_UNFIT_QUERIES,
  NEAREST,
  UNFIT_NEAREST,
} from "./limits.ts";
import { LookupList, type LookupNode } from "./lookup-list.ts";
import { isTellable, isUsable, placeOf } from "./scope.ts";

/**
 * The way to a target (BEP 5): of the nearest nodes known, some are asked at a time, and each tells of nearer ones, until the
 * nearest have all answered. Nodes whose ids fit their addresses (BEP 42) are searched on their own, so that no number of
 * chosen ids can crowd them out; the nearest few of the others are asked beside them. One node an address is asked, and two of
 * a network.
 */
export class Lookup {
  readonly target: Uint8Array;
  readonly #ownId: Uint8Array;
  readonly #fit: LookupList;
  readonly #unfit: LookupList;
  readonly #seen = new Set<string>();
  readonly #networks = new Map<string, number>();
  #waiting = 0;
  #asked = 0;
  #unfitAsked = 0;

  /** `ownId`: nobody need ask himself. */
  constructor(target: Uint8Array, ownId: Uint8Array) {
    this.target = target;
    this.#ownId = ownId;
    this.#fit = new LookupList(target);
    this.#unfit = new LookupList(target);
  }

  /** How many have been asked. */
  get queries(): number {
    return this.#asked;
  }

  /** A node that we know ourselves. */
  begin({ id, address }: NodeContact): void {
    this.#add(id, address);
  }

  /** An address that is said to have a node. */
  beginAt(address: PeerAddress): void {
    this.#add(undefined, address);
  }

  /** What a node that answered told of others. */
  learn(contacts: readonly NodeContact[], from: PeerAddress): void {
    const scope = addressScope(from.host);
    for (const { id, address } of contacts)
      if (isTellable(addressScope(address.host), scope)) this.#add(id, address);
  }

  /** Whom to ask next; undefined where enough are being asked, or there is nobody. */
  next(): LookupNode | undefined {
    if (this.#waiting >= LOOKUP_ALPHA || this.#asked >= MAX_LOOKUP_QUERIES) return undefined;
    const fit = this.#fit.nearest(NEAREST).find(isNew);
    const mayAskUnfit = this.#unfitAsked < MAX_UNFIT_QUERIES;
    const unfit = mayAskUnfit ? this.#unfit.nearest(UNFIT_NEAREST).find(isNew) : undefined;
    const node = this.#nearer(fit, unfit);
    if (!node) return undefined;
    node.state = "asked";
    this.#asked++;
    this.#waiting++;
    if (!node.isFit) this.#unfitAsked++;
    return node;
  }

  /** A node takes its time: somebody else is asked meanwhile. */
  slow(node: LookupNode): void {
    if (node.state !== "asked") return;
    node.state = "slow";
    this.#waiting--;
  }

  failed(node: LookupNode): void {
    this.#settle(node, "failed");
  }

  /** A node answered. Of one whose id was not known, or is another now, we have that only now. */
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

  /** Whether nobody is left to be asked, nor to be waited for. */
  get isDone(): boolean {
    if (this.#asked >= MAX_LOOKUP_QUERIES && this.#waiting === 0) return true;
    const nearest = [...this.#fit.nearest(NEAREST), ...this.#askableUnfit()];
    return nearest.every(({ state }) => state === "answered");
  }

  /** Those that have answered, nearest first: with fitting ids, and some others. */
  nearest(): LookupNode[] {
    return [...this.#fit.answered(NEAREST), ...this.#unfit.answered(UNFIT_NEAREST)];
  }

  #askableUnfit(): LookupNode[] {
    const nearest = this.#unfit.nearest(UNFIT_NEAREST);
    return this.#unfitAsked < MAX_UNFIT_QUERIES ? nearest : nearest.filter((node) => !isNew(node));
  }

  /** The nearer of two; fitting ids first by turns, as the others may be as near as they like. */
  #nearer(fit: LookupNode | undefined, unfit: LookupNode | undefined): LookupNode | undefined {
    if (!fit || !unfit) return fit ?? unfit;
    return this.#asked % 2 === 0 ? fit : unfit;
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

  #listOf({ isFit }: LookupNode): LookupList {
    return isFit ? this.#fit : this.#unfit;
  }

  #settle(node: LookupNode, state: "answered" | "failed"): void {
    if (node.state === "asked") this.#waiting--;
    node.state = state;
  }
}

function nodeOf(id: Uint8Array | undefined, address: PeerAddress): LookupNode {
  // An address without an id was named by ourselves, or by the user.
  const isFit = id === undefined || fitsAddress(id, address.host);
  return { id, address, isFit, state: "new", token: undefined };
}

function isNew({ state }: LookupNode): boolean {
  return state === "new";
}
