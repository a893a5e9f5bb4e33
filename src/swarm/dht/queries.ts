import { addressText, type PeerAddress } from "../../base/address.ts";
import { toHex } from "../../base/bytes.ts";
import { type Random, randomBelow } from "../../base/random.ts";
import { TokenBucket } from "../../base/rate.ts";
import { after, earliest, type Instant } from "../../base/time.ts";
import type { KrpcFailure, KrpcReply } from "../../wire/krpc.ts";
import { MAX_OPEN_QUERIES, QUERIES_PER_SECOND, QUERY_BURST } from "./limits.ts";
import { lostMs } from "./round-trip.ts";

/** Who asked, and hears what became of it: `slow` at most once, then one of the others. */
export interface Asker {
  answered(reply: KrpcReply, roundTripMs: number): void;
  /** It takes longer than answers do, and may still come. */
  slow(): void;
  /** It does not come any more, or is a refusal. */
  failed(refusal: KrpcFailure | undefined): void;
}

/** Whoever had to wait asks several at once. */
const RETRY_MS = 50;

interface OpenQuery {
  readonly to: PeerAddress;
  readonly asker: Asker;
  readonly askedAt: Instant;
  readonly lostAt: Instant;
  slowAt: Instant | undefined;
}

/** The questions that wait for their answers. An answer counts where it comes from the address that was asked and repeats four
 * bytes that only that address has seen. */
export class Queries {
  readonly #random: Random;
  readonly #open = new Map<string, OpenQuery>();
  /** How many questions are open to each address. */
  readonly #addresses = new Map<string, number>();
  readonly #rate = new TokenBucket(QUERIES_PER_SECOND, QUERY_BURST);
  #nextAt: Instant | undefined;

  constructor(random: Random) {
    this.#random = random;
  }

  get count(): number {
    return this.#open.size;
  }

  /** Whether one more may be asked now. */
  mayAsk(now: Instant): boolean {
    return this.#open.size < MAX_OPEN_QUERIES && this.#rate.waitMs(now) === 0;
  }

  /** When one more may be asked. */
  freeAt(now: Instant): Instant {
    return after(now, Math.max(RETRY_MS, this.#rate.waitMs(now)));
  }

  /** Whether an answer of this address is awaited. */
  expects(from: PeerAddress): boolean {
    return this.#addresses.has(addressText(from));
  }

  /** Opens a question: the bytes by which its answer will be known. */
  open(to: PeerAddress, expectedMs: number, asker: Asker, now: Instant): Uint8Array<ArrayBuffer> {
    this.#rate.take(1, now);
    let transaction: Uint8Array<ArrayBuffer>;
    do transaction = Uint8Array.from({ length: 4 }, () => randomBelow(this.#random, 256));
    while (this.#open.has(toHex(transaction)));
    const slowAt = after(now, expectedMs);
    const query = { to, asker, askedAt: now, slowAt, lostAt: after(now, lostMs(expectedMs)) };
    this.#open.set(toHex(transaction), query);
    this.#addresses.set(addressText(to), (this.#addresses.get(addressText(to)) ?? 0) + 1);
    this.#nextAt = earliest(this.#nextAt, slowAt);
    return transaction;
  }

  /** Takes an answer; false where nobody awaits it. */
  received(reply: KrpcReply | KrpcFailure, from: PeerAddress, now: Instant): boolean {
    const key = toHex(reply.transaction);
    const query = this.#open.get(key);
    if (!query || query.to.host !== from.host || query.to.port !== from.port) return false;
    this.#close(key, query);
    if (reply.kind === "reply") query.asker.answered(reply, now - query.askedAt);
    else query.asker.failed(reply);
    return true;
  }

  wake(now: Instant): void {
    if (this.#nextAt === undefined || now < this.#nextAt) return;
    this.#nextAt = undefined;
    // Whoever is told may ask anew at once.
    for (const [key, query] of [...this.#open]) {
      if (query.slowAt !== undefined && query.slowAt <= now) {
        query.slowAt = undefined;
        query.asker.slow();
      }
      if (query.lostAt <= now) {
        this.#close(key, query);
        query.asker.failed(undefined);
      } else this.#nextAt = earliest(this.#nextAt, query.slowAt ?? query.lostAt);
    }
  }

  nextWake(): Instant | undefined {
    return this.#nextAt;
  }

  #close(key: string, { to }: OpenQuery): void {
    this.#open.delete(key);
    const address = addressText(to);
    const left = (this.#addresses.get(address) ?? 1) - 1;
    if (left > 0) this.#addresses.set(address, left);
    else this.#addresses.delete(address);
  }
}
