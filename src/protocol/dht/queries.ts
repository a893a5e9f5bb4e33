import { addressText, type PeerAddress } from "../../base/address.ts";
import { toHex } from "../../base/bytes.ts";
import { type Random, randomBelow } from "../../base/random.ts";
import { TokenBucket } from "../../base/rate.ts";
import { after, earliest, type Instant } from "../../base/time.ts";
import type { KrpcFailure, KrpcReply } from "../../wire/dht/krpc.ts";
import { MAX_OPEN_QUERIES, QUERIES_PER_SECOND, QUERY_BURST } from "./limits.ts";
import { lostMs } from "./round-trip.ts";

/** Callbacks of a query: `slow` at most once, then one of the others. */
export interface QueryCallbacks {
  answered(reply: KrpcReply, roundTripMs: number): void;
  /** The answer takes longer than expected, but may still arrive. */
  slow?(): void;
  /** No answer arrived in time, or the node refused the query. */
  failed(refusal: KrpcFailure | undefined): void;
}

/** Minimum delay of a retry, so that several queries can be sent at once. */
const RETRY_MS = 50;

interface OpenQuery {
  readonly to: PeerAddress;
  readonly callbacks: QueryCallbacks;
  readonly sentAt: Instant;
  readonly lostAt: Instant;
  slowAt: Instant | undefined;
}

/** Pending queries. An answer is valid if it comes from the queried address and repeats the four-byte transaction id,
 * which only that address has received. */
export class Queries {
  readonly #random: Random;
  readonly #open = new Map<string, OpenQuery>();
  /** Number of pending queries by address. */
  readonly #addresses = new Map<string, number>();
  readonly #rate = new TokenBucket(QUERIES_PER_SECOND, QUERY_BURST);
  #nextAt: Instant | undefined;

  constructor(random: Random) {
    this.#random = random;
  }

  /** Whether another query may be sent now. */
  mayQuery(now: Instant): boolean {
    return this.#open.size < MAX_OPEN_QUERIES && this.#rate.waitMs(now) === 0;
  }

  /** Returns when another query may be sent. */
  freeAt(now: Instant): Instant {
    return after(now, Math.max(RETRY_MS, this.#rate.waitMs(now)));
  }

  /** Whether a query to this address is pending. */
  expects(from: PeerAddress): boolean {
    return this.#addresses.has(addressText(from));
  }

  /** Registers a query; returns its transaction id. */
  open(
    to: PeerAddress,
    expectedMs: number,
    callbacks: QueryCallbacks,
    now: Instant,
  ): Uint8Array<ArrayBuffer> {
    this.#rate.take(1, now);
    let transaction: Uint8Array<ArrayBuffer>;
    do transaction = Uint8Array.from({ length: 4 }, () => randomBelow(this.#random, 256));
    while (this.#open.has(toHex(transaction)));
    const slowAt = after(now, expectedMs);
    const query = { to, callbacks, sentAt: now, slowAt, lostAt: after(now, lostMs(expectedMs)) };
    this.#open.set(toHex(transaction), query);
    this.#addresses.set(addressText(to), (this.#addresses.get(addressText(to)) ?? 0) + 1);
    this.#nextAt = earliest(this.#nextAt, slowAt);
    return transaction;
  }

  /** Takes an answer; returns false if no query is pending for it. */
  received(reply: KrpcReply | KrpcFailure, from: PeerAddress, now: Instant): boolean {
    const key = toHex(reply.transaction);
    const query = this.#open.get(key);
    if (!query || query.to.host !== from.host || query.to.port !== from.port) return false;
    this.#close(key, query);
    if (reply.kind === "reply") query.callbacks.answered(reply, now - query.sentAt);
    else query.callbacks.failed(reply);
    return true;
  }

  wake(now: Instant): void {
    if (this.#nextAt === undefined || now < this.#nextAt) return;
    this.#nextAt = undefined;
    // A callback may send another query at once.
    for (const [key, query] of [...this.#open]) {
      if (query.slowAt !== undefined && query.slowAt <= now) {
        query.slowAt = undefined;
        query.callbacks.slow?.();
      }
      if (query.lostAt <= now) {
        this.#close(key, query);
        query.callbacks.failed(undefined);
      } else this.#nextAt = earliest(this.#nextAt, query.slowAt ?? query.lostAt);
    }
  }

  nextWake(): Instant | undefined {
    return this.#nextAt;
  }

  #close(key: string, { to }: OpenQuery): void {
    this.#open.delete(key);
    const address = addressText(to);
    const count = (this.#addresses.get(address) ?? 1) - 1;
    if (count > 0) this.#addresses.set(address, count);
    else this.#addresses.delete(address);
  }
}
