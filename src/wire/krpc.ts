import type { PeerAddress } from "../base/address.ts";
import type { AddressFamily } from "./compact-peers.ts";

/** A message of the DHT (BEP 5): a question, an answer, or a refusal. Bytes in it are the reader's own. */
export type KrpcMessage = KrpcQuery | KrpcReply | KrpcFailure;

/** A node, as others tell of it (BEP 5 "compact node info"). */
export interface NodeContact {
  /** 20 bytes. */
  readonly id: Uint8Array;
  readonly address: PeerAddress;
}

export interface KrpcQuery {
  readonly kind: "query";
  /** What the answer must repeat. */
  readonly transaction: Uint8Array;
  /** Who asks: 20 bytes. */
  readonly id: Uint8Array;
  /** Whoever asks does not answer, and must not be told of (BEP 43). */
  readonly isReadOnly: boolean;
  readonly ask: KrpcAsk;
}

/** What is asked. `target` has 20 bytes, whether it is an infohash, an id or that of an item. */
export type KrpcAsk =
  | { readonly method: "ping" }
  | { readonly method: "find_node"; readonly target: Uint8Array; readonly want: Want }
  | {
      readonly method: "get_peers";
      readonly target: Uint8Array;
      readonly want: Want;
      /** Filters of who is there are asked for as well (BEP 33). */
      readonly isScrape: boolean;
    }
  | {
      readonly method: "announce_peer";
      readonly target: Uint8Array;
      /** 0: the port that the question comes from. */
      readonly port: number;
      readonly token: Uint8Array;
      /** Has all of the content (BEP 33). */
      readonly isSeed: boolean;
    }
  | {
      readonly method: "get";
      readonly target: Uint8Array;
      readonly want: Want;
      /** Only what is newer than this is of interest. */
      readonly sequence: number | undefined;
    }
  | {
      readonly method: "put";
      readonly token: Uint8Array;
      readonly item: DhtItem;
      readonly cas: number | undefined;
    }
  | { readonly method: "sample_infohashes"; readonly target: Uint8Array; readonly want: Want }
  /** A method that we do not know; those with a target are answered like `find_node`. */
  | { readonly method: "other"; readonly target: Uint8Array | undefined; readonly want: Want };

/** Of which families nodes are wanted (BEP 32); undefined: of that in which the question came. */
export type Want = readonly AddressFamily[] | undefined;

/** An item (BEP 44): mutable with `signed`, immutable without. */
export interface DhtItem {
  /** One bencoded value. */
  readonly value: Uint8Array;
  readonly signed?: ItemSignature;
}

export interface ItemSignature {
  /** 32 bytes. */
  readonly key: Uint8Array;
  /** At most 64 bytes; an answer does not repeat it. */
  readonly salt: Uint8Array;
  readonly sequence: number;
  /** 64 bytes. */
  readonly signature: Uint8Array;
}

export interface KrpcReply {
  readonly kind: "reply";
  readonly transaction: Uint8Array;
  /** Who answers: 20 bytes. */
  readonly id: Uint8Array;
  /** Where the answer sees the asker (BEP 42). */
  readonly yourAddress?: PeerAddress;
  readonly nodes?: readonly NodeContact[];
  readonly nodes6?: readonly NodeContact[];
  /** What a later `announce_peer` or `put` has to show. */
  readonly token?: Uint8Array;
  readonly peers?: readonly PeerAddress[];
  /** Who has all, and who has not, as Bloom filters of 256 bytes (BEP 33). */
  readonly seedFilter?: Uint8Array;
  readonly peerFilter?: Uint8Array;
  readonly item?: DhtItem;
  /** Of a mutable item; given even where the item itself is not, since the asker has it. */
  readonly sequence?: number;
  readonly samples?: InfohashSamples;
}

/** Some of the infohashes that a node knows peers of (BEP 51). */
export interface InfohashSamples {
  /** 20 bytes each, one after the other. */
  readonly infohashes: Uint8Array;
  /** How many it knows. */
  readonly count: number;
  /** How long the sample stays the same. */
  readonly intervalSeconds: number;
}

export interface KrpcFailure {
  readonly kind: "failure";
  readonly transaction: Uint8Array;
  readonly yourAddress?: PeerAddress;
  /** 201 to 204 (BEP 5), 205 to 302 (BEP 44). */
  readonly code: number;
  /** Latin-1. */
  readonly message: string;
}
