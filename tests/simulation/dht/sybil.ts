import { addressText, type PeerAddress } from "../../../src/base/address.ts";
import type { NodeContact } from "../../../src/wire/dht/krpc.ts";
import { decodeKrpc } from "../../../src/wire/dht/krpc-decode.ts";
import { encodeKrpc } from "../../../src/wire/dht/krpc-encode.ts";
import { compareDistance } from "../../../src/wire/dht/node-id.ts";
import type { DhtNetwork, Inhabitant } from "./dht-network.ts";

/** One of many false nodes around a target: returns the other false nodes only, accepts every announcement,
 * and returns no peers. */
export class Sybil implements Inhabitant {
  readonly contact: NodeContact;
  readonly #network: DhtNetwork;
  readonly #gang: readonly Sybil[];
  asked = 0;

  constructor(network: DhtNetwork, contact: NodeContact, gang: readonly Sybil[]) {
    this.#network = network;
    this.contact = contact;
    this.#gang = gang;
  }

  received(bytes: Uint8Array, from: PeerAddress): void {
    const message = decodeKrpc(bytes);
    if (message.kind !== "query") return;
    this.asked++;
    const { request, transaction } = message;
    const target = "target" in request && request.target ? request.target : this.contact.id;
    const nodes = this.#gang
      .map(({ contact }) => contact)
      .sort((a, b) => compareDistance(target, a.id, b.id))
      .slice(0, 8);
    const { id } = this.contact;
    const token = Uint8Array.of(1);
    const reply = encodeKrpc({ kind: "reply", transaction, id, nodes, token, yourAddress: from });
    this.#network.send(reply, this.contact.address, from);
  }

  /** Announces itself to a node. */
  greet(to: PeerAddress): void {
    const transaction = Uint8Array.of(1, 2);
    const ask = { method: "ping" } as const;
    const query = encodeKrpc({
      kind: "query",
      transaction,
      id: this.contact.id,
      isReadOnly: false,
      request: ask,
    });
    this.#network.send(query, this.contact.address, to);
  }
}

/** False nodes whose ids share a prefix with the target, at addresses of a few networks. */
export function joinGang(
  network: DhtNetwork,
  { target, count, networks }: { target: Uint8Array; count: number; networks: number },
): Sybil[] {
  const gang: Sybil[] = [];
  for (let i = 0; i < count; i++) {
    const id = Uint8Array.from(target);
    id[18] = i >> 8;
    id[19] = i;
    const host = `150.${i % networks}.0.${1 + Math.floor(i / networks)}`;
    const sybil = new Sybil(network, { id, address: { host, port: 4000 } }, gang);
    gang.push(sybil);
    network.inhabitants.set(addressText(sybil.contact.address), sybil);
  }
  return gang;
}
