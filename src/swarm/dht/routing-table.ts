import { equalBytes } from "../../base/bytes.ts";
import type { Instant } from "../../base/time.ts";
import { compareDistance, DHT_ID_BYTES, fitsAddress, sharedBits } from "../../wire/dht-id.ts";
import type { NodeContact } from "../../wire/krpc.ts";
import { BUCKET_NODES, MAX_FAILURES, MAX_NODES_PER_NETWORK, NEAR_BUCKET_NODES } from "./limits.ts";
import { type Place, placeOf } from "./scope.ts";

/** A node that we know. */
export interface KnownNode extends NodeContact {
  /** Whether its id is one that its address allows (BEP 42). */
  readonly isFit: boolean;
  readonly place: Place;
  /** When it last answered; undefined: never in this run. */
  heardAt: Instant | undefined;
  /** How long an answer of it takes, smoothed. */
  roundTripMs: number | undefined;
  /** Questions in a row that it left unanswered. */
  failures: number;
}

/**
 * The nodes of one family that we know, by how many leading bits their ids share with ours (BEP 5): many far ones, all near
 * ones. One node an address, few of one network, and where there is no room those go first who fail, who never answered, and
 * whose ids do not fit their addresses.
 */
export class RoutingTable {
  readonly ownId: Uint8Array;
  readonly #buckets: KnownNode[][] = Array.from({ length: 8 * DHT_ID_BYTES + 1 }, () => []);
  /** By who owns the address: a public one has one node. */
  readonly #byAddress = new Map<string, KnownNode>();

  constructor(ownId: Uint8Array) {
    this.ownId = ownId;
  }

  /** How many nodes have answered in this run. */
  get provenCount(): number {
    let count = 0;
    for (const node of this.#byAddress.values()) if (node.heardAt !== undefined) count++;
    return count;
  }

  get size(): number {
    return this.#byAddress.size;
  }

  nodes(): Iterable<KnownNode> {
    return this.#byAddress.values();
  }

  /** What is known of the node at an address. */
  find(contact: NodeContact): KnownNode | undefined {
    const node = this.#byAddress.get(placeOf(contact.address).owner);
    return node && node.address.port === contact.address.port ? node : undefined;
  }

  /** A node has answered. Nothing where there is no room for it. */
  heard(contact: NodeContact, roundTripMs: number, now: Instant): void {
    const node = this.#put(contact, true);
    if (!node) return;
    node.heardAt = now;
    node.failures = 0;
    node.roundTripMs =
      node.roundTripMs === undefined ? roundTripMs : (7 * node.roundTripMs + roundTripMs) / 8;
  }

  /** Somebody, or the last run, told of a node: it comes in where there is room, and counts for little. */
  told(contact: NodeContact): void {
    this.#put(contact, false);
  }

  /** A node left a question unanswered. */
  failed(contact: NodeContact): void {
    const node = this.find(contact);
    if (node && ++node.failures >= MAX_FAILURES) this.#remove(node);
  }

  /** The `count` nodes that are nearest to a target, nearest first, of those that `isWanted`. */
  nearest(target: Uint8Array, count: number, isWanted: (node: KnownNode) => boolean): KnownNode[] {
    const home = sharedBits(this.ownId, target);
    const found: KnownNode[] = [];
    const take = (bucket: readonly KnownNode[]) => {
      for (const node of bucket) if (isWanted(node)) found.push(node);
    };
    // Those beside the target first, then all that are nearer to us (equally far from it), then ever farther ones.
    take(this.#buckets[home]!);
    if (found.length < count) for (let i = home + 1; i < this.#buckets.length; i++) take(this.#buckets[i]!);
    for (let i = home - 1; i >= 0 && found.length < count; i--) take(this.#buckets[i]!);
    return found.sort((a, b) => compareDistance(target, a.id, b.id)).slice(0, count);
  }

  /** The nearest bucket that has nodes: the table has something in all those before it. */
  get depth(): number {
    for (let i = this.#buckets.length - 1; i >= 0; i--) if (this.#buckets[i]!.length > 0) return i;
    return 0;
  }

  /** Whether a node with this id would find room, if no other could make way for it. */
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
      // A node that began anew has another id; others' words about one that answers count for nothing.
      if (!hasAnswered || (known.address.port !== contact.address.port && known.failures === 0))
        return undefined;
      this.#remove(known);
    }
    const index = sharedBits(this.ownId, contact.id);
    if (index === 8 * DHT_ID_BYTES) return undefined;
    const bucket = this.#buckets[index]!;
    const fresh = newNode(contact, place);
    const twin = bucket.find(({ id }) => equalBytes(id, contact.id));
    if (twin) {
      if (!hasAnswered || twin.failures === 0) return undefined;
      this.#remove(twin);
    }
    if (!this.#isWelcome(bucket, fresh)) return undefined;
    if (bucket.length >= capacityOf(index)) {
      const worst = worstOf(bucket);
      if (!worst || merit(worst) >= (hasAnswered ? (fresh.isFit ? 3 : 2) : 0)) return undefined;
      this.#remove(worst);
    }
    bucket.push(fresh);
    this.#byAddress.set(place.owner, fresh);
    return fresh;
  }

  #isWelcome(bucket: readonly KnownNode[], { place: { network } }: KnownNode): boolean {
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
  const isFit = fitsAddress(id, address.host);
  return { id, address, isFit, place, heardAt: undefined, roundTripMs: undefined, failures: 0 };
}

function capacityOf(index: number): number {
  return BUCKET_NODES[index] ?? NEAR_BUCKET_NODES;
}

/** Who goes first where there is no room: the node of the least merit, the one that has been there longest of these. */
function worstOf(bucket: readonly KnownNode[]): KnownNode | undefined {
  let worst: KnownNode | undefined;
  for (const node of bucket) if (!worst || merit(node) < merit(worst)) worst = node;
  return worst;
}

function merit({ failures, heardAt, isFit }: KnownNode): number {
  if (heardAt === undefined) return failures > 0 ? -1 : 1;
  if (failures > 1) return 0;
  return isFit ? 3 : 2;
}
