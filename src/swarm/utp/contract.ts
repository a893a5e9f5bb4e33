import type { PeerAddress } from "../../base/address.ts";
import type { Sha1 } from "../../base/ids.ts";
import type { Random } from "../../base/random.ts";

/** Names one connection of a {@link UtpTable}; never reused. Whoever calls gives even ones, those who call us get odd ones. */
export type UtpId = number;

/** What a table is given when it is made. */
export interface UtpSetup {
  readonly random: Random;
  readonly sha1: Sha1;
  /** Known to nobody else: whoever answers what follows from it has received our packets. */
  readonly secret: Uint8Array;
  /** Whether others may call us. */
  readonly answers: boolean;
}

/** What happens to uTP. */
export type UtpInput =
  /** A datagram came; `bytes` is valid during the call, and until `poll` gives nothing more. */
  | { readonly kind: "datagram"; readonly bytes: Uint8Array; readonly from: PeerAddress }
  | {
      readonly kind: "connect";
      readonly id: UtpId;
      readonly address: PeerAddress;
      readonly timeoutMs: number;
    }
  /** The connection owns `bytes` from now on. */
  | { readonly kind: "write"; readonly id: UtpId; readonly bytes: Uint8Array }
  /** Nothing shall be received for now: the peer is told when there is no more room. */
  | { readonly kind: "pause"; readonly id: UtpId }
  | { readonly kind: "resume"; readonly id: UtpId }
  /** What is unsent is dropped. */
  | { readonly kind: "close"; readonly id: UtpId };

/** What uTP asks of its driver. */
export type UtpOutput =
  | { readonly kind: "send"; readonly bytes: Uint8Array; readonly to: PeerAddress }
  /** A connection that we asked for stands. */
  | { readonly kind: "opened"; readonly id: UtpId }
  /** Somebody called us. */
  | { readonly kind: "accepted"; readonly id: UtpId; readonly remote: PeerAddress }
  /** `bytes` is a view, valid until the next `poll`. */
  | { readonly kind: "received"; readonly id: UtpId; readonly bytes: Uint8Array }
  /** All that was written has been sent once. */
  | { readonly kind: "drained"; readonly id: UtpId }
  /** It is over; nothing else comes of it. */
  | { readonly kind: "closed"; readonly id: UtpId; readonly reason: string };
