import type { PeerAddress } from "../../base/address.ts";
import type { Sha1 } from "../../base/ids.ts";
import type { Random } from "../../base/random.ts";

/** Identifies one connection of a {@link UtpTable}; never reused. The driver assigns even ids, the table odd ids to
 * incoming ones. */
export type UtpId = number;

/** Options and dependencies of a table. */
export interface UtpSetup {
  readonly random: Random;
  readonly sha1: Sha1;
  /** Secret of the SYN cookies: a peer that returns a valid cookie has received this engine's packets. */
  readonly secret: Uint8Array;
  /** Whether incoming connections are accepted. */
  readonly acceptsIncoming: boolean;
}

/** Events that a driver passes to uTP. */
export type UtpInput =
  /** A received datagram; `bytes` is valid during the call. Datagrams that arrive together should be passed before one `poll`:
   * they are acknowledged together, and their bytes are joined. */
  | { readonly kind: "datagram"; readonly bytes: Uint8Array; readonly from: PeerAddress }
  | {
      readonly kind: "connect";
      readonly id: UtpId;
      readonly address: PeerAddress;
      readonly timeoutMs: number;
    }
  /** The connection owns `bytes` from now on. */
  | { readonly kind: "write"; readonly id: UtpId; readonly bytes: Uint8Array }
  /** Stops delivering received bytes; the receive window closes once the buffer is full. */
  | { readonly kind: "pause"; readonly id: UtpId }
  | { readonly kind: "resume"; readonly id: UtpId }
  /** Closes the connection; unsent bytes are dropped. */
  | { readonly kind: "close"; readonly id: UtpId };

/** Requests of uTP to its driver. */
export type UtpOutput =
  | { readonly kind: "send"; readonly bytes: Uint8Array; readonly to: PeerAddress }
  /** An outgoing connection is open. */
  | { readonly kind: "opened"; readonly id: UtpId }
  /** A peer has connected. */
  | { readonly kind: "accepted"; readonly id: UtpId; readonly remote: PeerAddress }
  /** `bytes` is a view, valid until `poll` returns undefined. */
  | { readonly kind: "received"; readonly id: UtpId; readonly bytes: Uint8Array }
  /** Everything written has been sent at least once. */
  | { readonly kind: "drained"; readonly id: UtpId }
  /** The connection has ended; no further output refers to it. */
  | { readonly kind: "closed"; readonly id: UtpId; readonly reason: string };
