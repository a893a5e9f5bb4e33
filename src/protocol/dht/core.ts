import { familyOf, type PeerAddress } from "../../base/address.ts";
import { equalBytes } from "../../base/bytes.ts";
import { type Instant, instant } from "../../base/time.ts";
import type { AddressFamily } from "../../wire/compact-peers.ts";
import type { KrpcFailure, KrpcReply, KrpcRequest } from "../../wire/dht/krpc.ts";
import { encodeKrpc } from "../../wire/dht/krpc-encode.ts";
import type { DhtOutput, DhtSetup } from "./contract.ts";
import { Family } from "./family.ts";
import { Gate } from "./gate.ts";
import { MAX_SEEN_AT, OFFLINE_MS } from "./limits.ts";
import { Queries, type QueryCallbacks } from "./queries.ts";
import { RoundTrip } from "./round-trip.ts";

/** The destination of a query: a node, or an address whose node id is unknown. */
interface QueryTarget {
  readonly id: Uint8Array | undefined;
  readonly address: PeerAddress;
}

/** State shared by the components of a node: its families, its pending queries, its outputs. */
export class DhtCore {
  readonly setup: DhtSetup;
  readonly families: ReadonlyMap<AddressFamily, Family>;
  readonly queries: Queries;
  readonly gate = new Gate();
  readonly outputs: DhtOutput[] = [];
  readonly #roundTrip = new RoundTrip();
  #now = instant(0);
  #heardAt: Instant | undefined;
  /** Addresses of this machine as other nodes see it, private ones included; the most recent last. */
  readonly seenAt = new Set<string>();
  bytesIn = 0;
  bytesOut = 0;

  constructor(setup: DhtSetup) {
    this.setup = setup;
    this.queries = new Queries(setup.random);
    const states = setup.saved?.families ?? [];
    const made = setup.families.map((family): [AddressFamily, Family] => {
      const saved = states.find((state) => state.family === family);
      return [family, new Family(family, saved, setup.random)];
    });
    this.families = new Map(made);
  }

  get now(): Instant {
    return this.#now;
  }

  /** Sets the time of the input being handled. */
  setNow(now: Instant): void {
    this.#now = now;
  }

  /** A datagram was received. */
  received(lengthBytes: number): void {
    this.bytesIn += lengthBytes;
    this.#heardAt = this.#now;
  }

  /** The families whose networks can be reached; all of them if none seems reachable. */
  get reachable(): readonly Family[] {
    const all = [...this.families.values()];
    const reachable = all.filter((family) => !family.isUnreachable(this.#now));
    return reachable.length > 0 ? reachable : all;
  }

  familyFor({ host }: PeerAddress): Family | undefined {
    return this.families.get(familyOf(host));
  }

  /** Sends a datagram. */
  send(to: PeerAddress, bytes: Uint8Array): void {
    this.bytesOut += bytes.length;
    this.outputs.push({ kind: "send", to, bytes });
  }

  /** Whether another query may be sent now. */
  get mayQuery(): boolean {
    return this.queries.mayQuery(this.#now);
  }

  /** Sends a query. The result updates the routing table, then calls `callbacks`. */
  query(target: QueryTarget, request: KrpcRequest, callbacks: QueryCallbacks): void {
    const { id, address } = target;
    const family = this.familyFor(address);
    if (!family) {
      callbacks.failed(undefined);
      return;
    }
    const known = id && family.table.find({ id, address });
    const expectedMs = this.#roundTrip.expectedMs(known?.roundTripMs);
    const wrapped: QueryCallbacks = {
      answered: (reply, roundTripMs) => {
        this.#answered(family, address, reply, roundTripMs);
        callbacks.answered(reply, roundTripMs);
      },
      slow: () => callbacks.slow?.(),
      failed: (refusal) => {
        this.#failed(family, target, refusal);
        callbacks.failed(refusal);
      },
    };
    const transaction = this.queries.open(address, expectedMs, wrapped, this.#now);
    const { isReadOnly } = this.setup;
    this.send(address, encodeKrpc({ kind: "query", transaction, id: family.id, isReadOnly, request }));
  }

  #answered(family: Family, address: PeerAddress, reply: KrpcReply, roundTripMs: number): void {
    this.#roundTrip.measured(roundTripMs);
    family.answered();
    this.gate.prove(address, this.#now);
    if (!equalBytes(reply.id, family.id))
      family.table.answered({ id: reply.id, address }, roundTripMs, this.#now);
    if (!reply.yourAddress) return;
    this.seenAt.delete(reply.yourAddress.host);
    this.seenAt.add(reply.yourAddress.host);
    if (this.seenAt.size > MAX_SEEN_AT) this.seenAt.delete(this.seenAt.values().next().value!);
    const host = family.vote(address, reply.yourAddress.host, this.#now);
    if (host !== undefined) this.outputs.push({ kind: "address", host });
  }

  #failed(family: Family, { id, address }: QueryTarget, refusal: KrpcFailure | undefined): void {
    // A refusal is a reply, too.
    if (refusal) this.gate.prove(address, this.#now);
    else family.unanswered(this.#now);
    const isOnline = this.#heardAt !== undefined && this.#now - this.#heardAt < OFFLINE_MS;
    if (id && !refusal && isOnline) family.table.failed({ id, address });
  }
}
