import type { PeerAddress } from "../../base/address.ts";
import { after, type Instant } from "../../base/time.ts";
import type { KrpcReply, KrpcRequest, NodeContact, Want } from "../../wire/dht/krpc.ts";
import type { TaskReport } from "./contract.ts";
import type { DhtCore } from "./core.ts";
import type { Family } from "./family.ts";
import { FEW_NODES, LOOKUP_MS, NEAREST } from "./limits.ts";
import { Lookup } from "./lookup.ts";
import type { LookupNode } from "./lookup-list.ts";
import type { KnownNode } from "./routing-table.ts";

/** What to search for. */
export interface SearchRequest {
  readonly target: Uint8Array;
  /** Returns the query for each node of the lookup. */
  query(want: Want): KrpcRequest;
  /** Takes the reply of a node; returns true if the search is complete. */
  replied(reply: KrpcReply, from: PeerAddress): boolean;
  /** Returns the final query for each of the nearest nodes, with the node's token. */
  store?(token: Uint8Array): KrpcRequest | undefined;
}

/** A search in one family: a lookup, then storing at the nearest nodes. */
export class Search {
  readonly family: Family;
  readonly #core: DhtCore;
  readonly #request: SearchRequest;
  #lookup: Lookup;
  readonly #ended: (report: TaskReport) => void;
  /** When the search times out; undefined before it has begun. */
  #endsAt: Instant | undefined;
  #stage: "lookup" | "storing" | "over" = "lookup";
  #answers = 0;
  #attempts = 0;
  #stored = 0;
  #storing = 0;

  constructor(core: DhtCore, family: Family, request: SearchRequest, ended: (report: TaskReport) => void) {
    this.#core = core;
    this.family = family;
    this.#request = request;
    this.#lookup = new Lookup(request.target, family.id);
    this.#ended = ended;
  }

  get endsAt(): Instant | undefined {
    return this.#endsAt;
  }

  get hasBegun(): boolean {
    return this.#endsAt !== undefined;
  }

  /** Starts the lookup with the known nodes. */
  begin(): void {
    this.#endsAt = after(this.#core.now, LOOKUP_MS);
    this.#start();
  }

  #start(): void {
    const { table, reported } = this.family;
    this.#attempts++;
    // Both kinds are added separately, so that nodes with chosen ids cannot displace the others.
    for (const hasValidId of [true, false]) {
      const count = hasValidId ? 2 * NEAREST : NEAREST;
      const isWanted = (node: KnownNode) => node.hasValidId === hasValidId && node.failures < 2;
      for (const node of table.nearest(this.#request.target, count, isWanted)) this.#lookup.begin(node);
    }
    if (table.provenCount < FEW_NODES)
      for (const { address } of reported.values()) this.#lookup.beginAt(address);
    this.step();
  }

  /** Adds nodes of this family that the search in the other family found. */
  learn(contacts: readonly NodeContact[], from: PeerAddress): void {
    if (this.#stage === "lookup") this.#lookup.learn(contacts, from);
  }

  /** Sends the next queries; returns false if the query rate limit prevents it. */
  step(): boolean {
    if (this.#stage !== "lookup" || this.#endsAt === undefined) return true;
    if (this.#core.now >= this.#endsAt) {
      this.#store();
      return true;
    }
    while (this.#core.mayQuery) {
      const node = this.#lookup.next();
      if (!node) {
        if (this.#lookup.isDone) this.#lookupDone();
        return true;
      }
      this.#query(node);
    }
    return false;
  }

  /** Ends the search. */
  end(): void {
    if (this.#stage === "over") return;
    this.#stage = "over";
    const { queries } = this.#lookup;
    this.#ended({ queries, answers: this.#answers, stored: this.#stored });
  }

  #query(node: LookupNode): void {
    const { reachable } = this.#core;
    const isOtherIncomplete = reachable.some(
      (family) => family !== this.family && family.table.provenCount < FEW_NODES,
    );
    const want: Want = isOtherIncomplete ? [4, 6] : [this.family.family];
    this.#core.query(node, this.#request.query(want), {
      answered: (reply) => {
        if (this.#stage !== "lookup") return;
        this.#answers++;
        this.#lookup.answered(node, reply.id, reply.token);
        this.#lookup.learn((this.family.family === 4 ? reply.nodes : reply.nodes6) ?? [], node.address);
        if (this.#request.replied(reply, node.address)) this.end();
        else this.step();
      },
      slow: () => {
        this.#lookup.slow(node);
        this.step();
      },
      failed: () => {
        this.#lookup.failed(node);
        this.step();
      },
    });
  }

  /** All nodes have been queried. If none answered, the lookup is repeated once: datagrams may be lost, and new nodes known. */
  #lookupDone(): void {
    if (this.#answers > 0 || this.#attempts > 1 || !this.family.hasNodes) {
      this.#store();
      return;
    }
    this.#lookup = new Lookup(this.#request.target, this.family.id);
    this.#start();
  }

  /** Stores at the nearest nodes, regardless of the rate limit: they are few, and their tokens expire soon. */
  #store(): void {
    this.#stage = "storing";
    for (const { id, address, token } of this.#lookup.nearest()) {
      const request = token && this.#request.store?.(token);
      if (!request) continue;
      this.#storing++;
      const settled = (isStored: boolean) => {
        if (isStored) this.#stored++;
        if (--this.#storing === 0) this.end();
      };
      this.#core.query({ id, address }, request, {
        answered: () => settled(true),
        failed: () => settled(false),
      });
    }
    if (this.#storing === 0) this.end();
  }
}
