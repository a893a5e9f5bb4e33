import type { PeerAddress } from "../../base/address.ts";
import type { Sha1 } from "../../base/ids.ts";
import type { Random } from "../../base/random.ts";
import type { Ed25519VerifierOf } from "../../base/signature.ts";
import type { AddressFamily } from "../../wire/compact-peers.ts";
import type { DhtState } from "../../wire/dht-state.ts";
import type { DhtItem } from "../../wire/krpc.ts";

/** Names one task of a node; the caller chooses, and never uses one again. */
export type DhtTaskId = number;

/** What a node is given when it is made. */
export interface DhtSetup {
  readonly families: readonly AddressFamily[];
  readonly sha1: Sha1;
  readonly verifierOf: Ed25519VerifierOf;
  /** Strong chance: tokens and transactions are made of it. */
  readonly random: Random;
  /** We cannot be asked: others are told so (BEP 43). */
  readonly isReadOnly: boolean;
  /** What the last run left. */
  readonly saved?: DhtState;
}

/** What happens to a node. */
export type DhtInput =
  /** A datagram; the bytes are valid during the call only. */
  | { readonly kind: "received"; readonly bytes: Uint8Array; readonly from: PeerAddress }
  /** Addresses that are said to have nodes: of the configuration, a link, or a peer. */
  | { readonly kind: "nodes"; readonly addresses: readonly PeerAddress[] }
  /** Looks for peers, and tells the nodes nearest to the infohash of us where `announce` is given. */
  | {
      readonly kind: "peers";
      readonly task: DhtTaskId;
      readonly infohash: Uint8Array;
      readonly announce: Announcement | undefined;
    }
  /** Looks for an item (BEP 44): that whose value hashes to `target`, or the latest of a key and salt. */
  | {
      readonly kind: "get";
      readonly task: DhtTaskId;
      readonly target: Uint8Array;
      readonly signedBy: { readonly key: Uint8Array; readonly salt: Uint8Array } | undefined;
    }
  /** Puts an item to the nodes nearest to its target. */
  | { readonly kind: "put"; readonly task: DhtTaskId; readonly item: DhtItem }
  | { readonly kind: "cancel"; readonly task: DhtTaskId };

/** What others are told of us. */
export interface Announcement {
  /** 0: the port that our datagrams come from. */
  readonly port: number;
  readonly isSeed: boolean;
}

/** What a node asks of the driver. */
export type DhtOutput =
  | { readonly kind: "send"; readonly to: PeerAddress; readonly bytes: Uint8Array }
  | { readonly kind: "peers"; readonly task: DhtTaskId; readonly addresses: readonly PeerAddress[] }
  /** An item that fits, checked. Of a mutable one a later one may follow. */
  | { readonly kind: "item"; readonly task: DhtTaskId; readonly item: DhtItem }
  | { readonly kind: "done"; readonly task: DhtTaskId; readonly report: TaskReport }
  /** Others agree on where they see us. */
  | { readonly kind: "address"; readonly host: string };

/** What came of a task. */
export interface TaskReport {
  /** Nodes that were asked on the way, and those that answered. */
  readonly queries: number;
  readonly answers: number;
  /** Nodes that took what we announced or put. */
  readonly stored: number;
}
