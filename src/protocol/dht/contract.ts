import type { PeerAddress } from "../../base/address.ts";
import type { Sha1 } from "../../base/ids.ts";
import type { Random } from "../../base/random.ts";
import type { Ed25519VerifierOf } from "../../base/signature.ts";
import type { AddressFamily } from "../../wire/compact-peers.ts";
import type { DhtItem } from "../../wire/dht/krpc.ts";
import type { DhtState } from "../../wire/dht/saved-nodes.ts";

/** Identifies one task of a node. The caller assigns it and never reuses it. */
export type DhtTaskId = number;

/** Options and dependencies of a node. */
export interface DhtSetup {
  readonly families: readonly AddressFamily[];
  readonly sha1: Sha1;
  readonly verifierOf: Ed25519VerifierOf;
  /** Cryptographically strong: tokens and transaction ids are derived from it. */
  readonly random: Random;
  /** The node cannot be queried, and its queries announce that (BEP 43). */
  readonly isReadOnly: boolean;
  /** The state saved by the previous run. */
  readonly saved?: DhtState;
}

/** Events that a driver passes to a node. */
export type DhtInput =
  /** A received datagram; the bytes are valid only during the call. */
  | { readonly kind: "received"; readonly bytes: Uint8Array; readonly from: PeerAddress }
  /** Addresses that may have nodes: from the configuration, a link, or a peer. */
  | { readonly kind: "nodes"; readonly addresses: readonly PeerAddress[] }
  /** Looks up the peers of an infohash (BEP 5); with `announce`, also announces this engine to the nearest nodes. */
  | {
      readonly kind: "peers";
      readonly task: DhtTaskId;
      readonly infohash: Uint8Array;
      readonly announce: Announcement | undefined;
    }
  /** Looks up an item (BEP 44): the one whose value hashes to `target`, or the latest of a key and salt. */
  | {
      readonly kind: "get";
      readonly task: DhtTaskId;
      readonly target: Uint8Array;
      readonly signedBy: { readonly key: Uint8Array; readonly salt: Uint8Array } | undefined;
    }
  /** Stores an item at the nodes nearest to its target (BEP 44). */
  | { readonly kind: "put"; readonly task: DhtTaskId; readonly item: DhtItem }
  | { readonly kind: "cancel"; readonly task: DhtTaskId };

/** What is announced about this engine. */
export interface Announcement {
  /** 0 stands for the source port of the datagrams (BEP 5 `implied_port`). */
  readonly port: number;
  readonly isSeed: boolean;
}

/** Requests of a node to its driver. */
export type DhtOutput =
  | { readonly kind: "send"; readonly to: PeerAddress; readonly bytes: Uint8Array }
  | { readonly kind: "peers"; readonly task: DhtTaskId; readonly addresses: readonly PeerAddress[] }
  /** A verified item. A mutable item may be followed by a later one. */
  | { readonly kind: "item"; readonly task: DhtTaskId; readonly item: DhtItem }
  | { readonly kind: "done"; readonly task: DhtTaskId; readonly report: TaskReport }
  /** Several networks agree on this node's external address. */
  | { readonly kind: "address"; readonly host: string };

/** The result of a task. */
export interface TaskReport {
  /** Nodes that were queried during the lookup, and those that answered. */
  readonly queries: number;
  readonly answers: number;
  /** Nodes that stored the announcement or item. */
  readonly stored: number;
}
