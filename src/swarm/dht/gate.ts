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
  STRANGERS_PER_SECOND,
  UNPROVEN_FACTOR,
} from "./limits.ts";
import { placeOf } from "./scope.ts";

interface Sender {
  readonly until: Instant;
  count: number;
  /** What may still be sent to it while it has not shown that it hears us. */
  creditBytes: number;
}

/**
 * Whose datagrams are looked at, and how much may be sent where. A source address can be forged: towards one that has not
 * shown that it hears us (by an answer to what only it has seen, or a token of ours), no more than three bytes go out for
 * one that came in.
 */
export class Gate {
  readonly #senders = new Map<string, Sender>();
  readonly #proven = new Map<string, Instant>();
  readonly #strangers = new TokenBucket(STRANGERS_PER_SECOND, STRANGERS_PER_SECOND);
  readonly #answers = new TokenBucket(ANSWER_BYTES_PER_SECOND, ANSWER_BURST_BYTES);

  /** Whether a datagram is looked at. The flood is dropped before anything is read. */
  admits(from: PeerAddress, lengthBytes: number, isExpected: boolean, now: Instant): boolean {
    if (!isExpected && !this.#strangers.take(1, now)) return false;
    const sender = this.#sender(from, now);
    if (++sender.count > MAX_DATAGRAMS_PER_SENDER) return false;
    const creditBytes = sender.creditBytes + UNPROVEN_FACTOR * lengthBytes;
    sender.creditBytes = Math.min(UNPROVEN_FACTOR * MAX_ANSWER_BYTES, creditBytes);
    return true;
  }

  /** An address has shown that it hears us. */
  prove(address: PeerAddress, now: Instant): void {
    const key = addressText(address);
    this.#proven.delete(key);
    this.#proven.set(key, after(now, PROVEN_MS));
    if (this.#proven.size > MAX_PROVEN) this.#proven.delete(this.#proven.keys().next().value!);
  }

  isProven(address: PeerAddress, now: Instant): boolean {
    const until = this.#proven.get(addressText(address));
    return until !== undefined && until > now;
  }

  /** How many bytes an answer to this address may have. */
  allowanceBytes(to: PeerAddress, now: Instant): number {
    if (this.isProven(to, now)) return MAX_ANSWER_BYTES;
    return Math.min(MAX_ANSWER_BYTES, this.#senders.get(placeOf(to).owner)?.creditBytes ?? 0);
  }

  /** Counts what is sent to an address unasked or as an answer; false where it may not be. */
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
    // The one whose span began first goes. What it had left to receive goes with it.
    this.#senders.delete(key);
    if (this.#senders.size >= MAX_SENDERS) this.#senders.delete(this.#senders.keys().next().value!);
    const sender = { until: after(now, SENDER_SPAN_MS), count: 0, creditBytes: 0 };
    this.#senders.set(key, sender);
    return sender;
  }
}
