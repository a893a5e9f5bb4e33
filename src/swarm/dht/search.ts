import type { PeerAddress } from "../../base/address.ts";
import { after, type Instant } from "../../base/time.ts";
import type { KrpcAsk, KrpcReply, NodeContact, Want } from "../../wire/krpc.ts";
import type { TaskReport } from "./contract.ts";
import type { DhtCore } from "./core.ts";
import type { Family } from "./family.ts";
import { FEW_NODES, LOOKUP_MS, NEAREST } from "./limits.ts";
import { Lookup } from "./lookup.ts";
import type { LookupNode } from "./lookup-list.ts";
import type { KnownNode } from "./routing-table.ts";

/** What is searched for. */
export interface SearchWish {
  readonly target: Uint8Array;
  /** What each node on the way is asked. */
  question(want: Want): KrpcAsk;
  /** What a node answered. True: all that was wanted is there. */
  heard(reply: KrpcReply, from: PeerAddress): boolean;
  /** What the nearest are told at the end, with the token that each gave. */
  ending?(token: Uint8Array): KrpcAsk | undefined;
}

/** A wish in one family: the lookup, then what the nearest are told. */
export class Search {
  readonly family: Family;
  readonly #core: DhtCore;
  readonly #wish: SearchWish;
  #lookup: Lookup;
  readonly #ended: (report: TaskReport) => void;
  /** When it ends, whatever is missing. Undefined: it has not begun. */
  #endsAt: Instant | undefined;
  #stage: "looking" | "telling" | "over" = "looking";
  #answers = 0;
  #beginnings = 0;
  #stored = 0;
  #telling = 0;

  constructor(core: DhtCore, family: Family, wish: SearchWish, ended: (report: TaskReport) => void) {
    this.#core = core;
    this.family = family;
    this.#wish = wish;
    this.#lookup = new Lookup(wish.target, family.id);
    this.#ended = ended;
  }

  get isOver(): boolean {
    return this.#stage === "over";
  }

  get endsAt(): Instant | undefined {
    return this.#endsAt;
  }

  get hasBegun(): boolean {
    return this.#endsAt !== undefined;
  }

  /** Begins with whom we know. */
  begin(): void {
    this.#endsAt = after(this.#core.now, LOOKUP_MS);
    this.#start();
  }

  #start(): void {
    const { table, named } = this.family;
    this.#beginnings++;
    // Each kind on its own: nodes with ids of their choice must not crowd out the others at the very beginning.
    for (const isFit of [true, false]) {
      const count = isFit ? 2 * NEAREST : NEAREST;
      const isWanted = (node: KnownNode) => node.isFit === isFit && node.failures < 2;
      for (const node of table.nearest(this.#wish.target, count, isWanted)) this.#lookup.begin(node);
    }
    if (table.provenCount < FEW_NODES)
      for (const { address } of named.values()) this.#lookup.beginAt(address);
    this.step();
  }

  /** Nodes of this family that came by way of the other. */
  learn(contacts: readonly NodeContact[], from: PeerAddress): void {
    if (this.#stage === "looking") this.#lookup.learn(contacts, from);
  }

  /** Asks whoever is to be asked next; false where that must wait for the rate of our questions. */
  step(): boolean {
    if (this.#stage !== "looking" || this.#endsAt === undefined) return true;
    if (this.#core.now >= this.#endsAt) {
      this.#tell();
      return true;
    }
    while (this.#core.mayAsk) {
      const node = this.#lookup.next();
      if (!node) {
        if (this.#lookup.isDone) this.#lookedAll();
        return true;
      }
      this.#ask(node);
    }
    return false;
  }

  /** Ends it: nobody wants to know any more. */
  end(): void {
    if (this.#stage === "over") return;
    this.#stage = "over";
    const { queries } = this.#lookup;
    this.#ended({ queries, answers: this.#answers, stored: this.#stored });
  }

  #ask(node: LookupNode): void {
    const { reachable } = this.#core;
    const isOtherThin = reachable.some(
      (family) => family !== this.family && family.table.provenCount < FEW_NODES,
    );
    const want: Want = isOtherThin ? [4, 6] : [this.family.family];
    this.#core.ask(node, this.#wish.question(want), {
      answered: (reply) => {
        if (this.#stage !== "looking") return;
        this.#answers++;
        this.#lookup.answered(node, reply.id, reply.token);
        this.#lookup.learn((this.family.family === 4 ? reply.nodes : reply.nodes6) ?? [], node.address);
        if (this.#wish.heard(reply, node.address)) this.end();
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

  /** Nobody is left to be asked. Where nobody at all answered it begins anew once: datagrams are lost, and others may be known by
   * now. */
  #lookedAll(): void {
    if (this.#answers > 0 || this.#beginnings > 1 || !this.family.knowsAnybody) {
      this.#tell();
      return;
    }
    this.#lookup = new Lookup(this.#wish.target, this.family.id);
    this.#start();
  }

  /** Tells the nearest, whatever the rate: they are few, and their tokens do not hold for long. */
  #tell(): void {
    this.#stage = "telling";
    for (const { id, address, token } of this.#lookup.nearest()) {
      const ask = token && this.#wish.ending?.(token);
      if (!ask) continue;
      this.#telling++;
      const settled = (isStored: boolean) => {
        if (isStored) this.#stored++;
        if (--this.#telling === 0) this.end();
      };
      this.#core.ask({ id, address }, ask, {
        answered: () => settled(true),
        slow() {},
        failed: () => settled(false),
      });
    }
    if (this.#telling === 0) this.end();
  }
}
