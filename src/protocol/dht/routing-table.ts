import { equalBytes } from "../../base/bytes.ts";
import type { Instant } from "../../base/time.ts";
import type { NodeContact } from "../../wire/dht/krpc.ts";
import { compareDistance, DHT_ID_BYTES, isNodeIdFor, sharedBits } from "../../wire/dht/node-id.ts";
import { BUCKET_NODES, MAX_FAILURES, MAX_NODES_PER_NETWORK, NEAR_BUCKET_NODES } from "./limits.ts";
import { type Place, placeOf } from "./scope.ts";

/** A node in the routing table. */
export interface KnownNode extends NodeContact {
  /** Whether its id matches its address (BEP 42). */
  readonly hasValidId: boolean;
  readonly place: Place;
  /** When it last answered; undefined: not in this run. */
  answeredAt: Instant | undefined;
  /** Smoothed round trip in milliseconds. */
  roundTripMs: number | undefined;
  /** Consecutive unanswered queries. */
  failures: number;
}

/**
 * The known nodes of one family, in buckets by the number of leading bits that their ids share with the own id (BEP 5): many
 * distant ones, all near ones. One node per address and few per network. A full bucket first drops nodes that fail, that never
 * answered, or whose ids do not match their addresses.
 */
export class RoutingTable {
  readonly ownId: Uint8Array;
  readonly #buckets: KnownNode[][] = Array.from({ length: 8 * DHT_ID_BYTES + 1 }, () => []);
  /** By owner of the address: a public address has one node. */
  readonly #byAddress = new Map<string, KnownNode>();

  constructor(ownId: Uint8Array) {
    this.ownId = ownId;
  }

  /** Number of nodes that have answered in this run. */
  get provenCount(): number {
    let count = 0;
    for (const node of this.#byAddress.values()) if (node.answeredAt !== undefined) count++;
    return count;
  }

  get size(): number {
    return this.#byAddress.size;
  }

  nodes(): Iterable<KnownNode> {
    return this.#byAddress.values();
  }

  /** Returns the node at the address of a contact. */
  find(contact: NodeContact): KnownNode | undefined {
    const node = this.#byAddress.get(placeOf(contact.address).owner);
    return node && node.address.port === contact.address.port ? node : undefined;
  }

  /** A node has answered. Ignored if the bucket has no room for it. */
  answered(contact: NodeContact, roundTripMs: number, now: Instant): void {
    const node = this.#put(contact, true);
    if (!node) return;
    node.answeredAt = now;
    node.failures = 0;
    node.roundTripMs =
      node.roundTripMs === undefined ? roundTripMs : (7 * node.roundTripMs + roundTripMs) / 8;
  }

  /** Adds a node reported by another one, or saved by the previous run: it never displaces other nodes. */
  addUnverified(contact: NodeContact): void {
    this.#put(contact, false);
  }

  /** A node did not answer a query. */
  failed(contact: NodeContact): void {
    const node = this.find(contact);
    if (node && ++node.failures >= MAX_FAILURES) this.#remove(node);
  }

  /** Returns the `count` nodes nearest to a target for which `isWanted` is true, nearest first. */
  nearest(target: Uint8Array, count: number, isWanted: (node: KnownNode) => boolean): KnownNode[] {
    const own = sharedBits(this.ownId, target);
    const found: KnownNode[] = [];
    const take = (bucket: readonly KnownNode[]) => {
      for (const node of bucket) if (isWanted(node)) found.push(node);
    };
    // First the bucket of the target, then all nearer to the own id (equally distant from it), then ever more distant ones.
    take(this.#buckets[own]!);
    if (found.length < count) for (let i = own + 1; i < this.#buckets.length; i++) take(this.#buckets[i]!);
    for (let i = own - 1; i >= 0 && found.length < count; i--) take(this.#buckets[i]!);
    return found.sort((a, b) => compareDistance(target, a.id, b.id)).slice(0, count);
  }

  /** Index of the nearest bucket that has nodes. */
  get depth(): number {
    for (let i = this.#buckets.length - 1; i >= 0; i--) if (this.#buckets[i]!.length > 0) return i;
    return 0;
  }

  /** Whether the bucket of this id has a free place. */
  hasRoom(id: Uint8Array): boolean {
    const index = sharedBits(this.ownId, id);
    return this.#buckets[index]!.length < capacityOf(index);
  }

  #put(contact: NodeContact, hasAnswered: boolean): KnownNode | undefined {
    const place = placeOf(contact.address);
    const known = this.#byAddress.get(place.owner);
    if (known) {
      const isSame = known.address.port === contact.address.port && equalBytes(known.id, contact.id);
      if (isSame) return known;
      // A restarted node has another id. Reports about a node that answers are ignored.
      if (!hasAnswered || (known.address.port !== contact.address.port && known.failures === 0))
        return undefined;
      this.#remove(known);
    }
    const index = sharedBits(this.ownId, contact.id);
    if (index === 8 * DHT_ID_BYTES) return undefined;
    const bucket = this.#buckets[index]!;
    const added = newNode(contact, place);
    const twin = bucket.find(({ id }) => equalBytes(id, contact.id));
    if (twin) {
      if (!hasAnswered || twin.failures === 0) return undefined;
      this.#remove(twin);
    }
    if (!this.#isNetworkAllowed(bucket, added)) return undefined;
    if (bucket.length >= capacityOf(index)) {
      const worst = worstOf(bucket);
      if (!worst || merit(worst) >= (hasAnswered ? (added.hasValidId ? 3 : 2) : 0)) return undefined;
      this.#remove(worst);
    }
    bucket.push(added);
    this.#byAddress.set(place.owner, added);
    return added;
  }

  #isNetworkAllowed(bucket: readonly KnownNode[], { place: { network } }: KnownNode): boolean {
    if (network === undefined) return true;
    let neighbours = 0;
    for (const node of bucket) if (node.place.network === network) neighbours++;
    return neighbours < MAX_NODES_PER_NETWORK;
  }

  #remove(node: KnownNode): void {
    this.#byAddress.delete(node.place.owner);
    const bucket = this.#buckets[sharedBits(this.ownId, node.id)]!;
    bucket.splice(bucket.indexOf(node), 1);
  }
}

function newNode({ id, address }: NodeContact, place: Place): KnownNode {
  const hasValidId = isNodeIdFor(id, address.host);
  return { id, address, hasValidId, place, answeredAt: undefined, roundTripMs: undefined, failures: 0 };
}

function capacityOf(index: number): number {
  return BUCKET_NODES[index] ?? NEAR_BUCKET_NODES;
}

/** Returns the node to drop from a full bucket: the one of the least merit, the oldest of equals. */
function worstOf(bucket: readonly KnownNode[]): KnownNode | undefined {
  let worst: KnownNode | undefined;
  for (const node of bucket) if (!worst || merit(node) < merit(worst)) worst = node;
  return worst;
}

function merit({ failures, answeredAt, hasValidId }: KnownNode): number {
  if (answeredAt === undefined) return failures > 0 ? -1 : 1;
  if (failures > 1) return 0;
  return hasValidId ? 3 : 2;
}
