import type { Sha1 } from "../../base/ids.ts";
import type { MseMethod } from "../../wire/peer/mse.ts";
import type { MseStream } from "./stream.ts";

/** Dependencies of a handshake. */
export interface MseDependencies {
  readonly sha1: Sha1;
  /** Cryptographically strong. */
  readonly randomBytes: (length: number) => Uint8Array;
}

/** One side of an MSE handshake, as a state machine without IO. */
export interface MseHandshake {
  /**
   * Takes received bytes, which are valid only during the call; returns the outcome once the handshake is complete. Throws
   * `DecodeError` if the peer does not use MSE, or refuses the handshake.
   */
  receive(bytes: Uint8Array): MseOutcome | undefined;
  /** Returns the bytes to send now, owned by the caller; undefined if there are none. */
  take(): Uint8Array | undefined;
}

/** A completed handshake. */
export interface MseOutcome {
  readonly method: MseMethod;
  /** 20 bytes. */
  readonly infohash: Uint8Array;
  readonly stream: MseStream;
  /** Received bytes behind the handshake, still encrypted: pass them to the stream first. */
  readonly rest: Uint8Array;
}
