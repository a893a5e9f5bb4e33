import { addressScope, type PeerAddress } from "../../base/address.ts";
import { DecodeError } from "../../base/errors.ts";
import type { Machine } from "../../base/machine.ts";
import { earliest, type Instant } from "../../base/time.ts";
import { itemTarget } from "../../wire/dht/item.ts";
import type { KrpcMessage, KrpcQuery } from "../../wire/dht/krpc.ts";
import { decodeKrpc } from "../../wire/dht/krpc-decode.ts";
import type { DhtState } from "../../wire/dht/saved-nodes.ts";
import type { DhtInput, DhtOutput, DhtSetup } from "./contract.ts";
import { DhtCore } from "./core.ts";
import { Responder } from "./responder.ts";
import { isUsable } from "./scope.ts";
import { Searches } from "./searches.ts";
import { Upkeep } from "./upkeep.ts";

/** Statistics of a node. */
interface DhtNodeFigures {
  /** Nodes that have answered in this run, by family. */
  readonly nodes4: number;
  readonly nodes6: number;
  /** Completed lookups. */
  readonly lookups: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** Datagrams dropped by rate limits, and malformed datagrams. */
  readonly dropped: number;
  readonly malformed: number;
  /** Peers and items stored for other nodes. */
  readonly peers: number;
  readonly items: number;
}

/** A node of the distributed hash table (BEP 5, 32, 33, 42, 43, 44, 51), of both IP versions. See docs/design/dht.md. */
export class DhtNode implements Machine<DhtInput, DhtOutput> {
  readonly #core: DhtCore;
  readonly #responder: Responder;
  readonly #searches: Searches;
  readonly #upkeep: Upkeep;
  #dropped = 0;
  #malformed = 0;

  constructor(setup: DhtSetup, now: Instant) {
    this.#core = new DhtCore(setup);
    this.#core.setNow(now);
    this.#responder = new Responder(this.#core);
    this.#searches = new Searches(this.#core);
    this.#upkeep = new Upkeep(this.#core, this.#searches, this.#responder);
  }

  handle(input: DhtInput, now: Instant): void {
    this.#core.setNow(now);
    switch (input.kind) {
      case "received":
        this.#received(input.bytes, input.from);
        break;
      case "nodes":
        this.#addAddresses(input.addresses);
        break;
      case "peers":
        this.#upkeep.lookedUp(input.infohash);
        this.#searches.peers(input);
        break;
      case "get":
        this.#upkeep.lookedUp(input.target);
        this.#searches.get(input);
        break;
      case "put":
        this.#upkeep.lookedUp(itemTarget(input.item, this.#core.setup.sha1));
        this.#searches.put(input);
        break;
      case "cancel":
        this.#searches.cancel(input.task);
        break;
    }
    this.#searches.scheduleRetry();
  }

  wake(now: Instant): void {
    this.#core.setNow(now);
    this.#core.queries.wake(now);
    this.#upkeep.wake(now);
    this.#searches.wake(now);
  }

  poll(): DhtOutput | undefined {
    return this.#core.outputs.shift();
  }

  /** Never undefined once `wake` was called. */
  nextWake(): Instant | undefined {
    const upkeepAt = this.#upkeep.nextWake() ?? this.#core.now;
    return earliest(earliest(this.#core.queries.nextWake(), this.#searches.nextWake()), upkeepAt);
  }

  /** Whether another node has seen this machine at this address. */
  isSeenAt(host: string): boolean {
    return this.#core.seenAt.has(host);
  }

  /** The state to save for the next run. */
  state(): DhtState {
    return { families: [...this.#core.families.values()].map((family) => family.state()) };
  }

  figures(): DhtNodeFigures {
    const { families, bytesIn, bytesOut } = this.#core;
    return {
      nodes4: families.get(4)?.table.provenCount ?? 0,
      nodes6: families.get(6)?.table.provenCount ?? 0,
      lookups: this.#searches.ended,
      bytesIn,
      bytesOut,
      dropped: this.#dropped,
      malformed: this.#malformed,
      ...this.#responder.stored,
    };
  }

  #received(bytes: Uint8Array, from: PeerAddress): void {
    const { queries, gate, now } = this.#core;
    const isExpected = queries.expects(from);
    if (!gate.admits(from, bytes.length, isExpected, now)) {
      this.#dropped++;
      return;
    }
    this.#core.received(bytes.length);
    let message: KrpcMessage;
    try {
      message = decodeKrpc(bytes);
    } catch (thrown) {
      if (!(thrown instanceof DecodeError)) throw thrown;
      this.#malformed++;
      return;
    }
    if (message.kind !== "query") {
      if (queries.received(message, from, now)) this.#searches.fill();
    } else if (isUsable(addressScope(from.host)) && from.port > 0) {
      this.#queried(message, from);
    }
  }

  #queried(query: KrpcQuery, from: PeerAddress): void {
    const { setup, gate, now } = this.#core;
    if (setup.isReadOnly) return;
    this.#responder.respond(query, from);
    const family = this.#core.familyFor(from);
    if (!family || query.isReadOnly || !family.table.hasRoom(query.id)) return;
    const contact = { id: query.id, address: from };
    if (family.table.find(contact)) return;
    // The ping sent to it later counts towards its response bytes, because its address may be forged.
    if (gate.spend(from, PING_BYTES, now)) family.addQuerier(from);
  }

  #addAddresses(addresses: readonly PeerAddress[]): void {
    for (const address of addresses)
      if (isUsable(addressScope(address.host)) && address.port > 0)
        this.#core.familyFor(address)?.addReported(address);
    this.#searches.fill();
    this.#upkeep.addressesAdded();
  }
}

/** The length of a ping query. */
const PING_BYTES = 70;
