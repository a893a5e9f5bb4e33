import { addressScope, type PeerAddress } from "../../base/address.ts";
import { DecodeError } from "../../base/errors.ts";
import type { Machine } from "../../base/machine.ts";
import { earliest, type Instant } from "../../base/time.ts";
import { itemTarget } from "../../wire/dht-item.ts";
import type { DhtState } from "../../wire/dht-state.ts";
import type { KrpcMessage, KrpcQuery } from "../../wire/krpc.ts";
import { decodeKrpc } from "../../wire/krpc-decode.ts";
import { Answers } from "./answers.ts";
import type { DhtInput, DhtOutput, DhtSetup } from "./contract.ts";
import { DhtCore } from "./core.ts";
import { isUsable } from "./scope.ts";
import { Searches } from "./searches.ts";
import { Upkeep } from "./upkeep.ts";

/** What a node counts. */
export interface DhtNodeFigures {
  /** Nodes that have answered, by family. */
  readonly nodes4: number;
  readonly nodes6: number;
  /** Lookups that have ended. */
  readonly lookups: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** Datagrams that were not looked at, and those that broke the format. */
  readonly dropped: number;
  readonly malformed: number;
  /** Kept for others. */
  readonly peers: number;
  readonly items: number;
}

/** A node of the distributed hash table (BEP 5, 32, 33, 42, 43, 44, 51), of both IP versions. See docs/design/dht.md. */
export class DhtNode implements Machine<DhtInput, DhtOutput> {
  readonly #core: DhtCore;
  readonly #answers: Answers;
  readonly #searches: Searches;
  readonly #upkeep: Upkeep;
  #dropped = 0;
  #malformed = 0;

  constructor(setup: DhtSetup, now: Instant) {
    this.#core = new DhtCore(setup);
    this.#core.setNow(now);
    this.#answers = new Answers(this.#core);
    this.#searches = new Searches(this.#core);
    this.#upkeep = new Upkeep(this.#core, this.#searches, this.#answers);
  }

  handle(input: DhtInput, now: Instant): void {
    this.#core.setNow(now);
    switch (input.kind) {
      case "received":
        this.#received(input.bytes, input.from);
        break;
      case "nodes":
        this.#mayBeAt(input.addresses);
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
    this.#searches.noteRate();
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

  /** Whether somebody has seen us at this address. */
  isSeenAt(host: string): boolean {
    return this.#core.seenAt.has(host);
  }

  /** What the next run shall begin with. */
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
      ...this.#answers.kept,
    };
  }

  #received(bytes: Uint8Array, from: PeerAddress): void {
    const { queries, gate, now } = this.#core;
    const isExpected = queries.expects(from);
    if (!gate.admits(from, bytes.length, isExpected, now)) {
      this.#dropped++;
      return;
    }
    this.#core.heard(bytes.length);
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
      this.#asked(message, from);
    }
  }

  #asked(query: KrpcQuery, from: PeerAddress): void {
    const { setup, gate, now } = this.#core;
    if (setup.isReadOnly) return;
    this.#answers.answer(query, from);
    const family = this.#core.familyFor(from);
    if (!family || query.isReadOnly || !family.table.hasRoom(query.id)) return;
    const contact = { id: query.id, address: from };
    if (family.table.find(contact)) return;
    // What we ask it later counts as if it were part of the answer: its address may be forged.
    if (gate.spend(from, PING_BYTES, now)) family.called(from);
  }

  #mayBeAt(addresses: readonly PeerAddress[]): void {
    for (const address of addresses)
      if (isUsable(addressScope(address.host)) && address.port > 0)
        this.#core.familyFor(address)?.name(address);
    this.#searches.fill();
    this.#upkeep.named();
  }
}

/** The length of our own ping. */
const PING_BYTES = 70;
