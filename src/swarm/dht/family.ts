import { addressText, type PeerAddress } from "../../base/address.ts";
import type { Random } from "../../base/random.ts";
import type { Instant } from "../../base/time.ts";
import type { AddressFamily } from "../../wire/compact-peers.ts";
import { fitsAddress, nodeIdFor } from "../../wire/dht-id.ts";
import { type DhtFamilyState, MAX_SAVED_NODES } from "../../wire/dht-state.ts";
import { AddressVotes } from "./address-votes.ts";
import { CUT_OFF_MS, CUT_OFF_QUERIES, MAX_NEWCOMERS } from "./limits.ts";
import { RoutingTable } from "./routing-table.ts";

/** Somebody who may have a node. */
export interface Newcomer {
  readonly address: PeerAddress;
  isAsked: boolean;
}

/** Our node in the network of one IP version (BEP 32): it has an id and a table of its own. */
export class Family {
  readonly family: AddressFamily;
  /** Addresses that the user, a link or a peer named, by text, until they have answered or not. */
  readonly named = new Map<string, Newcomer>();
  /** Those that asked us something: they may be forged, and must not crowd out the others. */
  readonly callers = new Map<string, Newcomer>();
  /** Questions left unanswered since the last answer. */
  #unanswered = 0;
  #failedAt: Instant | undefined;
  readonly #random: Random;
  readonly #votes: AddressVotes;
  #table: RoutingTable;

  constructor(family: AddressFamily, saved: DhtFamilyState | undefined, random: Random) {
    this.family = family;
    this.#random = random;
    this.#votes = new AddressVotes(family);
    this.#table = new RoutingTable(saved?.id ?? nodeIdFor(undefined, random));
    for (const node of saved?.nodes ?? []) this.#table.told(node);
  }

  get table(): RoutingTable {
    return this.#table;
  }

  get id(): Uint8Array {
    return this.#table.ownId;
  }

  /** Whether anybody is known that could be asked. */
  get knowsAnybody(): boolean {
    return this.#table.size > 0 || this.named.size > 0;
  }

  /** Whether nobody here ever answers: this machine has no way into that part of the Internet, as far as one can see. */
  isCutOff(now: Instant): boolean {
    const isSilent = this.#unanswered >= CUT_OFF_QUERIES && this.#table.provenCount === 0;
    return isSilent && this.#failedAt !== undefined && now - this.#failedAt < CUT_OFF_MS;
  }

  /** Somebody answered. */
  answered(): void {
    this.#unanswered = 0;
  }

  /** Somebody did not. */
  unanswered(now: Instant): void {
    // A way may come up later: it is looked for again.
    if (!this.isCutOff(now)) this.#failedAt = now;
    this.#unanswered++;
  }

  /** An address is said to have a node. */
  name(address: PeerAddress): void {
    // Somebody who knows of a node may know of a way to it, too.
    this.#unanswered = 0;
    note(this.named, address);
  }

  /** Somebody asked us something. */
  called(address: PeerAddress): void {
    note(this.callers, address);
  }

  /** Somebody sees us at `seen`. The address that most agree on, where our id did not fit it and is a new one from now on. */
  vote(voter: PeerAddress, seen: string, now: Instant): string | undefined {
    this.#votes.vote(voter, seen);
    const winner = this.#votes.winner;
    if (winner === undefined || fitsAddress(this.id, winner)) return undefined;
    const old = this.#table;
    this.#table = new RoutingTable(nodeIdFor(winner, this.#random));
    for (const node of old.nodes()) {
      if (node.heardAt === undefined) this.#table.told(node);
      else this.#table.heard(node, node.roundTripMs ?? 0, now);
    }
    return winner;
  }

  /** What the next run shall begin with: those that answer first. */
  state(): DhtFamilyState {
    const nodes = [...this.#table.nodes()].filter(({ failures }) => failures < 2);
    nodes.sort((a, b) => Number(b.heardAt !== undefined) - Number(a.heardAt !== undefined));
    return { family: this.family, id: this.id, nodes: nodes.slice(0, MAX_SAVED_NODES) };
  }
}

/** The first go where there are too many. */
function note(newcomers: Map<string, Newcomer>, address: PeerAddress): void {
  const key = addressText(address);
  if (newcomers.has(key)) return;
  newcomers.set(key, { address, isAsked: false });
  if (newcomers.size > MAX_NEWCOMERS) newcomers.delete(newcomers.keys().next().value!);
}
