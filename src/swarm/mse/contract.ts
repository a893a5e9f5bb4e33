import type { Sha1 } from "../../base/ids.ts";
import type { MseMethod } from "../../wire/mse.ts";
import type { MseStream } from "./stream.ts";

/** What a handshake needs of the machine. */
export interface MseTools {
  readonly sha1: Sha1;
  /** Strong chance. */
  readonly randomBytes: (length: number) => Uint8Array;
}

/** One end of a handshake: bytes go in, bytes come out, until it stands. */
export interface MseHandshake {
  /**
   * Takes what came; the outcome with the bytes that end the handshake, undefined before. `bytes` are only looked at during
   * the call. Throws `DecodeError` where the other end does not speak this, or not with us.
   */
  receive(bytes: Uint8Array): MseOutcome | undefined;
  /** What is to be sent now; undefined where there is nothing. The caller owns it. */
  take(): Uint8Array | undefined;
}

/** A handshake that stands. */
export interface MseOutcome {
  readonly method: MseMethod;
  /** 20 bytes. */
  readonly infohash: Uint8Array;
  readonly stream: MseStream;
  /** What came behind the handshake, as it came: to be given to the stream first. */
  readonly rest: Uint8Array;
}
