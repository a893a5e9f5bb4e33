import { familyOf, type PeerAddress } from "../../base/address.ts";
import { equalBytes } from "../../base/bytes.ts";
import { type Instant, instant } from "../../base/time.ts";
import type { AddressFamily } from "../../wire/compact-peers.ts";
import type { KrpcAsk, KrpcFailure, KrpcReply } from "../../wire/krpc.ts";
import { encodeKrpc } from "../../wire/krpc-encode.ts";
import type { DhtOutput, DhtSetup } from "./contract.ts";
import { Family } from "./family.ts";
import { Gate } from "./gate.ts";
import { MAX_SEEN_AT, OFFLINE_MS } from "./limits.ts";
import { type Asker, Queries } from "./queries.ts";
import { RoundTrip } from "./round-trip.ts";

/** Whom to ask: a node, or an address whose node is not known. */
export interface Asked {
  readonly id: Uint8Array | undefined;
  readonly address: PeerAddress;
}

/** What the parts of a node share: its families, its questions, its way out. */
export class DhtCore {
  readonly setup: DhtSetup;
  readonly families: ReadonlyMap<AddressFamily, Family>;
  readonly queries: Queries;
  readonly gate = new Gate();
  readonly outputs: DhtOutput[] = [];
  readonly #roundTrip = new RoundTrip();
  #now = instant(0);
  #heardAt: Instant | undefined;
  /** Where others see us, at home too: the last that were told. */
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

  /** The time goes on. */
  setNow(now: Instant): void {
    this.#now = now;
  }

  /** A datagram came. */
  heard(lengthBytes: number): void {
    this.bytesIn += lengthBytes;
    this.#heardAt = this.#now;
  }

  /** The families by which others can be reached; all of them where none seems so. */
  get reachable(): readonly Family[] {
    const all = [...this.families.values()];
    const reachable = all.filter((family) => !family.isCutOff(this.#now));
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

  /** Whether one more question may be asked now. */
  get mayAsk(): boolean {
    return this.queries.mayAsk(this.#now);
  }

  /** Asks; what comes of it goes to the table, then to the asker. */
  ask(asked: Asked, ask: KrpcAsk, asker: Asker): void {
    const family = this.familyFor(asked.address);
    if (!family) {
      asker.failed(undefined);
      return;
    }
    const known = asked.id && family.table.find({ id: asked.id, address: asked.address });
    const expectedMs = this.#roundTrip.expectedMs(known?.roundTripMs);
    const hears: Asker = {
      answered: (reply, roundTripMs) => {
        this.#answered(family, asked.address, reply, roundTripMs);
        asker.answered(reply, roundTripMs);
      },
      slow: () => asker.slow(),
      failed: (refusal) => {
        this.#failed(family, asked, refusal);
        asker.failed(refusal);
      },
    };
    const transaction = this.queries.open(asked.address, expectedMs, hears, this.#now);
    const { isReadOnly } = this.setup;
    this.send(asked.address, encodeKrpc({ kind: "query", transaction, id: family.id, isReadOnly, ask }));
  }

  #answered(family: Family, address: PeerAddress, reply: KrpcReply, roundTripMs: number): void {
    this.#roundTrip.measured(roundTripMs);
    family.answered();
    this.gate.prove(address, this.#now);
    if (!equalBytes(reply.id, family.id))
      family.table.heard({ id: reply.id, address }, roundTripMs, this.#now);
    if (!reply.yourAddress) return;
    this.seenAt.delete(reply.yourAddress.host);
    this.seenAt.add(reply.yourAddress.host);
    if (this.seenAt.size > MAX_SEEN_AT) this.seenAt.delete(this.seenAt.values().next().value!);
    const host = family.vote(address, reply.yourAddress.host, this.#now);
    if (host !== undefined) this.outputs.push({ kind: "address", host });
  }

  #failed(family: Family, { id, address }: Asked, refusal: KrpcFailure | undefined): void {
    // A refusal is an answer, too.
    if (refusal) this.gate.prove(address, this.#now);
    else family.unanswered(this.#now);
    const isOnline = this.#heardAt !== undefined && this.#now - this.#heardAt < OFFLINE_MS;
    if (id && !refusal && isOnline) family.table.failed({ id, address });
  }
}
