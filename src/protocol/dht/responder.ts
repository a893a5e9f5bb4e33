import type { PeerAddress } from "../../base/address.ts";
import { type AddressScope, addressScope, familyOf } from "../../base/address.ts";
import type { AddressFamily } from "../../wire/compact-peers.ts";
import { addressFilter } from "../../wire/dht/bloom-filter.ts";
import { isSignedItem, itemTarget } from "../../wire/dht/item.ts";
import type {
  KrpcFailure,
  KrpcQuery,
  KrpcReply,
  KrpcRequest,
  NodeContact,
  Want,
} from "../../wire/dht/krpc.ts";
import { encodeKrpc, encodeKrpcWithin } from "../../wire/dht/krpc-encode.ts";
import { compareDistance } from "../../wire/dht/node-id.ts";
import type { DhtCore } from "./core.ts";
import { ItemStore, type PutRefusal } from "./item-store.ts";
import { INVALID_ID_RETURNED, MAX_ANSWER_PEERS, NEAREST } from "./limits.ts";
import { PeerStore } from "./peer-store.ts";
import type { KnownNode } from "./routing-table.ts";
import { isShareable } from "./scope.ts";
import { Tokens } from "./tokens.ts";

/** The fields of a response, or why the query is refused. */
type ResponseFields = Partial<Omit<KrpcReply, "kind" | "transaction" | "id">> | PutRefusal;

type RequestOf<M extends KrpcRequest["method"]> = Extract<KrpcRequest, { method: M }>;

/** Responds to queries of other nodes: nodes, peers, items (BEP 5, 32, 33, 44, 51). */
export class Responder {
  readonly #core: DhtCore;
  readonly #tokens: Tokens;
  readonly #peers: PeerStore;
  readonly #items = new ItemStore();

  constructor(core: DhtCore) {
    this.#core = core;
    this.#tokens = new Tokens(core.setup.sha1, core.setup.random);
    this.#peers = new PeerStore(core.setup.random);
  }

  /** Responds to a query, with at most as many bytes as the address is allowed; not at all if even that is too much. */
  respond({ transaction, request }: KrpcQuery, from: PeerAddress): void {
    const { gate, now } = this.#core;
    const family = this.#core.familyFor(from);
    if (!family) return;
    const response = this.#responseTo(request, from);
    const head = { transaction, yourAddress: from };
    const bytes =
      "code" in response
        ? encodeKrpc({ kind: "failure", ...head, ...response } satisfies KrpcFailure)
        : encodeKrpcWithin(
            { kind: "reply", ...head, id: family.id, ...response },
            gate.allowanceBytes(from, now),
          );
    if (bytes && gate.spend(from, bytes.length, now)) this.#core.send(from, bytes);
  }

  /** Number of peers and items stored for other nodes. */
  get stored(): { readonly peers: number; readonly items: number } {
    return { peers: this.#peers.size, items: this.#items.size };
  }

  /** Drops expired peers and items. */
  expire(): void {
    this.#peers.expire(this.#core.now);
    this.#items.expire(this.#core.now);
  }

  #responseTo(request: KrpcRequest, from: PeerAddress): ResponseFields {
    switch (request.method) {
      case "ping":
        return {};
      case "find_node":
        return this.#nodes(request.target, request.want, from);
      case "get_peers":
        return this.#getPeers(request, from);
      case "announce_peer":
        return this.#announce(request, from);
      case "get":
        return this.#get(request, from);
      case "put":
        return this.#put(request, from);
      case "sample_infohashes": {
        const samples = this.#peers.samples(this.#core.now);
        return { ...this.#nodes(request.target, request.want, from), samples };
      }
      case "other":
        if (!request.target) return { code: 204, message: "unknown method" };
        return this.#nodes(request.target, request.want, from);
    }
  }

  #getPeers({ target, want, isScrape }: RequestOf<"get_peers">, from: PeerAddress): ResponseFields {
    const { now } = this.#core;
    return {
      ...this.#nodes(target, want, from),
      token: this.#tokens.make(from.host, target, now),
      peers: this.#peers.peers(target, from.host, MAX_ANSWER_PEERS, now),
      ...(isScrape && this.#filters(target, from)),
    };
  }

  #filters(target: Uint8Array, from: PeerAddress): ResponseFields {
    const { now, setup } = this.#core;
    const members = this.#peers.members(target, familyOf(from.host), now);
    const hosts = (isSeed: boolean) =>
      members.filter((peer) => peer.isSeed === isSeed).map(({ address }) => address.host);
    return {
      seedFilter: addressFilter(hosts(true), setup.sha1),
      peerFilter: addressFilter(hosts(false), setup.sha1),
    };
  }

  #announce({ target, port, token, isSeed }: RequestOf<"announce_peer">, from: PeerAddress): ResponseFields {
    if (!this.#proves(token, target, from)) return BAD_TOKEN;
    this.#peers.add(target, { host: from.host, port: port || from.port }, isSeed, this.#core.now);
    return {};
  }

  #get({ target, want, sequence }: RequestOf<"get">, from: PeerAddress): ResponseFields {
    const { now } = this.#core;
    const item = this.#items.get(target, now);
    const held = item?.signed?.sequence;
    const isNewer = held === undefined || sequence === undefined || held > sequence;
    return {
      ...this.#nodes(target, want, from),
      token: this.#tokens.make(from.host, target, now),
      ...(held !== undefined && { sequence: held }),
      ...(item && isNewer && { item }),
    };
  }

  #put({ token, item, cas }: RequestOf<"put">, from: PeerAddress): ResponseFields {
    const { setup, now } = this.#core;
    const target = itemTarget(item, setup.sha1);
    if (!this.#proves(token, target, from)) return BAD_TOKEN;
    if (item.signed && !isSignedItem(item.value, item.signed, setup.verifierOf))
      return { code: 206, message: "invalid signature" };
    const ownId = this.#core.familyFor(from)!.id;
    return this.#items.put({ target, item, cas }, from.host, ownId, now) ?? {};
  }

  /** A valid token proves the address: it has received a response of this node. */
  #proves(token: Uint8Array, target: Uint8Array, from: PeerAddress): boolean {
    const { gate, now } = this.#core;
    if (!this.#tokens.isValid(token, from.host, target, now)) return false;
    gate.prove(from, now);
    return true;
  }

  /** Returns the nearest nodes, few of them with ids that do not match their addresses: those could always be the nearest. */
  #nearest(family: AddressFamily, target: Uint8Array, scope: AddressScope): NodeContact[] {
    const table = this.#core.families.get(family)?.table;
    if (!table) return [];
    const isGood = ({ answeredAt, failures, place }: KnownNode) =>
      answeredAt !== undefined && failures === 0 && isShareable(place.scope, scope);
    const valid = table.nearest(target, NEAREST, (node) => node.hasValidId && isGood(node));
    const invalid = table.nearest(target, INVALID_ID_RETURNED, (node) => !node.hasValidId && isGood(node));
    const returned = [...valid.slice(0, NEAREST - invalid.length), ...invalid];
    return returned.sort((a, b) => compareDistance(target, a.id, b.id));
  }

  #nodes(target: Uint8Array, want: Want, from: PeerAddress): { nodes: NodeContact[]; nodes6: NodeContact[] } {
    const families = want ?? [familyOf(from.host)];
    const scope = addressScope(from.host);
    const near = (family: AddressFamily) =>
      families.includes(family) ? this.#nearest(family, target, scope) : [];
    return { nodes: near(4), nodes6: near(6) };
  }
}

const BAD_TOKEN: PutRefusal = { code: 203, message: "invalid or expired token" };
