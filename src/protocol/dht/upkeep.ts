import { after, type Instant } from "../../base/time.ts";
import { randomIdNear, sharedBits } from "../../wire/dht/node-id.ts";
import type { DhtCore } from "./core.ts";
import type { Family, NewAddress } from "./family.ts";
import {
  FEW_NODES,
  FEW_NODES_LOOKUP_MS,
  NEW_ADDRESSES_PER_ROUND,
  QUESTIONABLE_MS,
  REFRESH_MS,
  UPKEEP_MS,
} from "./limits.ts";
import type { Responder } from "./responder.ts";
import type { Searches } from "./searches.ts";

/** When parts of one family's table were last refreshed. */
interface TableUpkeep {
  /** Last lookup of the own id. */
  ownAt: Instant | undefined;
  /** Last lookup in each bucket. */
  readonly bucketsAt: Map<number, Instant>;
}

/** Maintains the routing tables: pings new and silent nodes, refreshes buckets without lookups (BEP 5). */
export class Upkeep {
  readonly #core: DhtCore;
  readonly #searches: Searches;
  readonly #responder: Responder;
  readonly #tables = new Map<Family, TableUpkeep>();
  #nextAt: Instant | undefined;

  constructor(core: DhtCore, searches: Searches, responder: Responder) {
    this.#core = core;
    this.#searches = searches;
    this.#responder = responder;
  }

  /** Starts upkeep, or does what is due. */
  wake(now: Instant): void {
    if (this.#nextAt !== undefined && now < this.#nextAt) return;
    this.#nextAt = after(now, UPKEEP_MS);
    this.#responder.expire();
    for (const family of this.#core.reachable) {
      this.#ping(family.reported);
      this.#ping(family.queriers);
      this.#pingSilent(family);
      this.#lookUp(family, now);
    }
  }

  /** Addresses were reported: an empty table is filled at once. */
  addressesAdded(): void {
    for (const family of this.#core.reachable)
      if (family.table.provenCount === 0) this.#lookUp(family, this.#core.now);
  }

  nextWake(): Instant | undefined {
    return this.#nextAt;
  }

  /** A target is looked up, so its bucket needs no refresh. */
  lookedUp(target: Uint8Array): void {
    for (const family of this.#core.families.values())
      this.#tableOf(family).bucketsAt.set(sharedBits(family.id, target), this.#core.now);
  }

  #ping(addresses: Map<string, NewAddress>): void {
    let count = 0;
    for (const [key, entry] of addresses) {
      if (entry.isQueried) continue;
      if (count++ >= NEW_ADDRESSES_PER_ROUND || !this.#core.mayQuery) return;
      entry.isQueried = true;
      const settled = () => void addresses.delete(key);
      const callbacks = { answered: settled, failed: settled };
      this.#core.query({ id: undefined, address: entry.address }, { method: "ping" }, callbacks);
    }
  }

  /** Pings one node per round that has not answered for long. */
  #pingSilent({ table }: Family): void {
    const { now } = this.#core;
    for (const node of table.nodes()) {
      if (node.answeredAt !== undefined && now - node.answeredAt < QUESTIONABLE_MS) continue;
      if (this.#core.mayQuery) this.#core.query(node, { method: "ping" }, NO_CALLBACKS);
      return;
    }
  }

  #lookUp(family: Family, now: Instant): void {
    const { table, id } = family;
    if (!family.hasNodes) return;
    const upkeep = this.#tableOf(family);
    const spanMs = table.provenCount < FEW_NODES ? FEW_NODES_LOOKUP_MS : REFRESH_MS;
    if (upkeep.ownAt === undefined || now - upkeep.ownAt >= spanMs) {
      upkeep.ownAt = now;
      this.#searches.nodes(family, id);
      return;
    }
    for (let bucket = 0; bucket < table.depth; bucket++) {
      const at = upkeep.bucketsAt.get(bucket);
      if (at !== undefined && now - at < REFRESH_MS) continue;
      upkeep.bucketsAt.set(bucket, now);
      this.#searches.nodes(family, randomIdNear(id, bucket, this.#core.setup.random));
      return;
    }
  }

  #tableOf(family: Family): TableUpkeep {
    const known = this.#tables.get(family);
    if (known) return known;
    const added: TableUpkeep = { ownAt: undefined, bucketsAt: new Map() };
    this.#tables.set(family, added);
    return added;
  }
}

/** The query updates the routing table, which is all that upkeep needs. */
const NO_CALLBACKS = { answered() {}, failed() {} };
