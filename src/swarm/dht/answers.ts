import type { PeerAddress } from "../../base/address.ts";
import { type AddressScope, addressScope, familyOf } from "../../base/address.ts";
import type { AddressFamily } from "../../wire/compact-peers.ts";
import { addressFilter } from "../../wire/dht-filter.ts";
import { compareDistance } from "../../wire/dht-id.ts";
import { isSignedItem, itemTarget } from "../../wire/dht-item.ts";
import type { KrpcAsk, KrpcFailure, KrpcQuery, KrpcReply, NodeContact, Want } from "../../wire/krpc.ts";
import { encodeKrpc, encodeKrpcWithin } from "../../wire/krpc-encode.ts";
import type { DhtCore } from "./core.ts";
import { ItemStore, type PutRefusal } from "./item-store.ts";
import { MAX_ANSWER_PEERS, NEAREST, UNFIT_TOLD } from "./limits.ts";
import { PeerStore } from "./peer-store.ts";
import type { KnownNode } from "./routing-table.ts";
import { isTellable } from "./scope.ts";
import { Tokens } from "./tokens.ts";

/** What an answer holds beside who gives it. */
type Answer = Partial<Omit<KrpcReply, "kind" | "transaction" | "id">> | PutRefusal;

type AskOf<M extends KrpcAsk["method"]> = Extract<KrpcAsk, { method: M }>;

/** Answers what others ask: nodes, peers, items (BEP 5, 32, 33, 44, 51). */
export class Answers {
  readonly #core: DhtCore;
  readonly #tokens: Tokens;
  readonly #peers: PeerStore;
  readonly #items = new ItemStore();

  constructor(core: DhtCore) {
    this.#core = core;
    this.#tokens = new Tokens(core.setup.sha1, core.setup.random);
    this.#peers = new PeerStore(core.setup.random);
  }

  /** Sends the answer to a question, as large as the asker's address may have it; nothing where even the least is too large. */
  answer({ transaction, ask }: KrpcQuery, from: PeerAddress): void {
    const { gate, now } = this.#core;
    const family = this.#core.familyFor(from);
    if (!family) return;
    const answer = this.#answerTo(ask, from);
    const head = { transaction, yourAddress: from };
    const bytes =
      "code" in answer
        ? encodeKrpc({ kind: "failure", ...head, ...answer } satisfies KrpcFailure)
        : encodeKrpcWithin(
            { kind: "reply", ...head, id: family.id, ...answer },
            gate.allowanceBytes(from, now),
          );
    if (bytes && gate.spend(from, bytes.length, now)) this.#core.send(from, bytes);
  }

  /** How much is kept for others. */
  get kept(): { readonly peers: number; readonly items: number } {
    return { peers: this.#peers.size, items: this.#items.size };
  }

  /** Forgets what is too old. */
  expire(): void {
    this.#peers.expire(this.#core.now);
    this.#items.expire(this.#core.now);
  }

  #answerTo(ask: KrpcAsk, from: PeerAddress): Answer {
    switch (ask.method) {
      case "ping":
        return {};
      case "find_node":
        return this.#nodes(ask.target, ask.want, from);
      case "get_peers":
        return this.#getPeers(ask, from);
      case "announce_peer":
        return this.#announced(ask, from);
      case "get":
        return this.#get(ask, from);
      case "put":
        return this.#put(ask, from);
      case "sample_infohashes": {
        const samples = this.#peers.samples(this.#core.now);
        return { ...this.#nodes(ask.target, ask.want, from), samples };
      }
      case "other":
        if (!ask.target) return { code: 204, message: "unknown method" };
        return this.#nodes(ask.target, ask.want, from);
    }
  }

  #getPeers({ target, want, isScrape }: AskOf<"get_peers">, from: PeerAddress): Answer {
    const { now } = this.#core;
    return {
      ...this.#nodes(target, want, from),
      token: this.#tokens.make(from.host, target, now),
      peers: this.#peers.peers(target, from.host, MAX_ANSWER_PEERS, now),
      ...(isScrape && this.#filters(target, from)),
    };
  }

  #filters(target: Uint8Array, from: PeerAddress): Answer {
    const { now, setup } = this.#core;
    const members = this.#peers.members(target, familyOf(from.host), now);
    const hosts = (isSeed: boolean) =>
      members.filter((peer) => peer.isSeed === isSeed).map(({ address }) => address.host);
    return {
      seedFilter: addressFilter(hosts(true), setup.sha1),
      peerFilter: addressFilter(hosts(false), setup.sha1),
    };
  }

  #announced({ target, port, token, isSeed }: AskOf<"announce_peer">, from: PeerAddress): Answer {
    if (!this.#isHeard(token, target, from)) return BAD_TOKEN;
    this.#peers.add(target, { host: from.host, port: port || from.port }, isSeed, this.#core.now);
    return {};
  }

  #get({ target, want, sequence }: AskOf<"get">, from: PeerAddress): Answer {
    const { now } = this.#core;
    const item = this.#items.get(target, now);
    const held = item?.signed?.sequence;
    const isNews = held === undefined || sequence === undefined || held > sequence;
    return {
      ...this.#nodes(target, want, from),
      token: this.#tokens.make(from.host, target, now),
      ...(held !== undefined && { sequence: held }),
      ...(item && isNews && { item }),
    };
  }

  #put({ token, item, cas }: AskOf<"put">, from: PeerAddress): Answer {
    const { setup, now } = this.#core;
    const target = itemTarget(item, setup.sha1);
    if (!this.#isHeard(token, target, from)) return BAD_TOKEN;
    if (item.signed && !isSignedItem(item.value, item.signed, setup.verifierOf))
      return { code: 206, message: "the signature is wrong" };
    const ownId = this.#core.familyFor(from)!.id;
    return this.#items.put({ target, item, cas }, from.host, ownId, now) ?? {};
  }

  /** Who has our token hears us. */
  #isHeard(token: Uint8Array, target: Uint8Array, from: PeerAddress): boolean {
    const { gate, now } = this.#core;
    if (!this.#tokens.isValid(token, from.host, target, now)) return false;
    gate.prove(from, now);
    return true;
  }

  /** Of nodes with ids that do not fit their addresses only a few are told: whoever chooses his can be nearer than all others. */
  #nearest(family: AddressFamily, target: Uint8Array, scope: AddressScope): NodeContact[] {
    const table = this.#core.families.get(family)?.table;
    if (!table) return [];
    const isGood = ({ heardAt, failures, place }: KnownNode) =>
      heardAt !== undefined && failures === 0 && isTellable(place.scope, scope);
    const fit = table.nearest(target, NEAREST, (node) => node.isFit && isGood(node));
    const unfit = table.nearest(target, UNFIT_TOLD, (node) => !node.isFit && isGood(node));
    const told = [...fit.slice(0, NEAREST - unfit.length), ...unfit];
    return told.sort((a, b) => compareDistance(target, a.id, b.id));
  }

  #nodes(target: Uint8Array, want: Want, from: PeerAddress): { nodes: NodeContact[]; nodes6: NodeContact[] } {
    const families = want ?? [familyOf(from.host)];
    const scope = addressScope(from.host);
    const near = (family: AddressFamily) =>
      families.includes(family) ? this.#nearest(family, target, scope) : [];
    return { nodes: near(4), nodes6: near(6) };
  }
}

const BAD_TOKEN: PutRefusal = { code: 203, message: "the token is not ours, or too old" };
