import { addressText, type PeerAddress } from "../../base/address.ts";
import { concatBytes, latin1Bytes, readU16 } from "../../base/bytes.ts";
import type { Sha1 } from "../../base/ids.ts";
import type { UtpPacket } from "../../wire/utp-packet.ts";
import { sequenceAfter } from "./sequence.ts";

/** A first packet that was overtaken by so many of the same peer is still recognised. */
const OVERTAKEN = 3;

/**
 * Answers those who call us without remembering them: the number that our answer carries follows from who calls and a secret.
 * Only who received it can come back with it, so that calls from false addresses take no memory.
 */
export class Answers {
  readonly #sha1: Sha1;
  readonly #secret: Uint8Array;

  constructor(sha1: Sha1, secret: Uint8Array) {
    this.#sha1 = sha1;
    this.#secret = secret;
  }

  /** The number of the answer to a call (a SYN with this connection id and number). */
  sequence(from: PeerAddress, connectionId: number, callSequence: number): number {
    const text = latin1Bytes(`${addressText(from)} ${connectionId} ${callSequence}`);
    return readU16(this.#sha1(concatBytes([this.#secret, text])), 0);
  }

  /** The number of the call that one of the first packets of a connection belongs to; undefined where we never answered
   * such a call. */
  callOf(packet: UtpPacket, from: PeerAddress): number | undefined {
    const connectionId = (packet.connectionId - 1) & 0xffff;
    for (let steps = 1; steps <= 1 + OVERTAKEN; steps++) {
      const call = sequenceAfter(packet.sequence, -steps);
      const answered = this.sequence(from, connectionId, call);
      // Practice acknowledges the number before that of the answer, the letter of BEP 29 the answer itself.
      if (packet.ack === answered || packet.ack === sequenceAfter(answered, -1)) return call;
    }
    return undefined;
  }
}
