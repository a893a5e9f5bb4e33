import type { PeerAddress } from "../../base/address.ts";
import type { AddressFamily } from "../compact-peers.ts";

/** A DHT message (BEP 5). Decoded messages hold copies, not views. */
export type KrpcMessage = KrpcQuery | KrpcReply | KrpcFailure;

/** Id and address of a node (BEP 5 "compact node info"). */
export interface NodeContact {
  /** 20 bytes. */
  readonly id: Uint8Array;
  readonly address: PeerAddress;
}

/** A query (BEP 5). */
export interface KrpcQuery {
  readonly kind: "query";
  /** Transaction id, which the response repeats. */
  readonly transaction: Uint8Array;
  /** Node id of the sender, 20 bytes. */
  readonly id: Uint8Array;
  /** The sender does not answer queries and must not be listed to other nodes (BEP 43). */
  readonly isReadOnly: boolean;
  readonly request: KrpcRequest;
}

/** Method and arguments of a query. `target` has 20 bytes: an infohash, a node id or the target of an item. */
export type KrpcRequest =
  | { readonly method: "ping" }
  | { readonly method: "find_node"; readonly target: Uint8Array; readonly want: Want }
  | {
      readonly method: "get_peers";
      readonly target: Uint8Array;
      readonly want: Want;
      /** Also requests Bloom filters of seeds and peers (BEP 33). */
      readonly isScrape: boolean;
    }
  | {
      readonly method: "announce_peer";
      readonly target: Uint8Array;
      /** 0 for the source port of the query (`implied_port`). */
      readonly port: number;
      readonly token: Uint8Array;
      /** The sender has the whole content (BEP 33). */
      readonly isSeed: boolean;
    }
  | {
      readonly method: "get";
      readonly target: Uint8Array;
      readonly want: Want;
      /** Requests the item only if its sequence number is higher. */
      readonly sequence: number | undefined;
    }
  | {
      readonly method: "put";
      readonly token: Uint8Array;
      readonly item: DhtItem;
      /** The sequence number that the stored item must have. */
      readonly cas: number | undefined;
    }
  | { readonly method: "sample_infohashes"; readonly target: Uint8Array; readonly want: Want }
  /** An unknown method; with a target it is answered like `find_node`. */
  | { readonly method: "other"; readonly target: Uint8Array | undefined; readonly want: Want };

/** Families of which nodes are requested (BEP 32); undefined for the family over which the query came. */
export type Want = readonly AddressFamily[] | undefined;

/** An item (BEP 44): mutable if `signed` is present, otherwise immutable. */
export interface DhtItem {
  /** One bencoded value. */
  readonly value: Uint8Array;
  readonly signed?: ItemSignature;
}

/** Key, salt, sequence number and signature of a mutable item (BEP 44). */
export interface ItemSignature {
  /** 32 bytes. */
  readonly key: Uint8Array;
  /** At most 64 bytes; absent (empty) in responses. */
  readonly salt: Uint8Array;
  readonly sequence: number;
  /** 64 bytes. */
  readonly signature: Uint8Array;
}

/** The response to a query (BEP 5). */
export interface KrpcReply {
  readonly kind: "reply";
  readonly transaction: Uint8Array;
  /** Node id of the sender, 20 bytes. */
  readonly id: Uint8Array;
  /** Address of the querying node as the sender sees it (BEP 42). */
  readonly yourAddress?: PeerAddress;
  readonly nodes?: readonly NodeContact[];
  readonly nodes6?: readonly NodeContact[];
  /** Token that a later `announce_peer` or `put` must contain. */
  readonly token?: Uint8Array;
  readonly peers?: readonly PeerAddress[];
  /** Bloom filters of seeds and of other peers, 256 bytes each (BEP 33). */
  readonly seedFilter?: Uint8Array;
  readonly peerFilter?: Uint8Array;
  readonly item?: DhtItem;
  /** Sequence number of a mutable item; also present if the item is omitted because the querying node has it. */
  readonly sequence?: number;
  readonly samples?: InfohashSamples;
}

/** A sample of the infohashes for which a node stores peers (BEP 51). */
export interface InfohashSamples {
  /** Concatenated infohashes of 20 bytes. */
  readonly infohashes: Uint8Array;
  /** Number of infohashes that the node stores. */
  readonly count: number;
  /** Time until the node serves a new sample. */
  readonly intervalSeconds: number;
}

/** An error response (BEP 5). */
export interface KrpcFailure {
  readonly kind: "failure";
  readonly transaction: Uint8Array;
  readonly yourAddress?: PeerAddress;
  /** 201 to 204 (BEP 5), 205 to 302 (BEP 44). */
  readonly code: number;
  /** Latin-1. */
  readonly message: string;
}
