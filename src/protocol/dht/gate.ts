import { addressText, type PeerAddress } from "../../base/address.ts";
import { TokenBucket } from "../../base/rate.ts";
import { after, type Instant } from "../../base/time.ts";
import {
  ANSWER_BURST_BYTES,
  ANSWER_BYTES_PER_SECOND,
  MAX_ANSWER_BYTES,
  MAX_DATAGRAMS_PER_SENDER,
  MAX_PROVEN,
  MAX_SENDERS,
  PROVEN_MS,
  SENDER_SPAN_MS,
  UNPROVEN_FACTOR,
  UNSOLICITED_PER_SECOND,
} from "./limits.ts";
import { placeOf } from "./scope.ts";

interface Sender {
  readonly until: Instant;
  count: number;
  /** Bytes that may still be sent to this sender while its address is unproven. */
  creditBytes: number;
}

/**
 * Limits received datagrams and sent responses. Source addresses can be forged: an unproven address is sent at most three bytes
 * for each byte received, which prevents amplification. An address is proven by an answer to a query of this node, or by one of
 * its tokens.
 */
export class Gate {
  readonly #senders = new Map<string, Sender>();
  readonly #proven = new Map<string, Instant>();
  readonly #unsolicited = new TokenBucket(UNSOLICITED_PER_SECOND, UNSOLICITED_PER_SECOND);
  readonly #answers = new TokenBucket(ANSWER_BYTES_PER_SECOND, ANSWER_BURST_BYTES);

  /** Whether a datagram is processed. Floods are dropped before decoding. */
  admits(from: PeerAddress, lengthBytes: number, isExpected: boolean, now: Instant): boolean {
    if (!isExpected && !this.#unsolicited.take(1, now)) return false;
    const sender = this.#sender(from, now);
    if (++sender.count > MAX_DATAGRAMS_PER_SENDER) return false;
    const creditBytes = sender.creditBytes + UNPROVEN_FACTOR * lengthBytes;
    sender.creditBytes = Math.min(UNPROVEN_FACTOR * MAX_ANSWER_BYTES, creditBytes);
    return true;
  }

  /** Marks an address as proven: it receives this node's datagrams. */
  prove(address: PeerAddress, now: Instant): void {
    const key = addressText(address);
    this.#proven.delete(key);
    this.#proven.set(key, after(now, PROVEN_MS));
    if (this.#proven.size > MAX_PROVEN) this.#proven.delete(this.#proven.keys().next().value!);
  }

  #isProven(address: PeerAddress, now: Instant): boolean {
    const until = this.#proven.get(addressText(address));
    return until !== undefined && until > now;
  }

  /** Returns the maximum length of a response to this address, in bytes. */
  allowanceBytes(to: PeerAddress, now: Instant): number {
    if (this.#isProven(to, now)) return MAX_ANSWER_BYTES;
    return Math.min(MAX_ANSWER_BYTES, this.#senders.get(placeOf(to).owner)?.creditBytes ?? 0);
  }

  /** Charges a datagram sent to an address; returns false if it exceeds the limits. */
  spend(to: PeerAddress, lengthBytes: number, now: Instant): boolean {
    if (lengthBytes > this.allowanceBytes(to, now) || !this.#answers.take(lengthBytes, now)) return false;
    const sender = this.#senders.get(placeOf(to).owner);
    if (sender) sender.creditBytes = Math.max(0, sender.creditBytes - lengthBytes);
    return true;
  }

  #sender(from: PeerAddress, now: Instant): Sender {
    const key = placeOf(from).owner;
    const known = this.#senders.get(key);
    if (known && known.until > now) return known;
    // Evicts the sender whose period began first, with its remaining credit.
    this.#senders.delete(key);
    if (this.#senders.size >= MAX_SENDERS) this.#senders.delete(this.#senders.keys().next().value!);
    const sender = { until: after(now, SENDER_SPAN_MS), count: 0, creditBytes: 0 };
    this.#senders.set(key, sender);
    return sender;
  }
}
