import { addressScope, type PeerAddress } from "../../base/address.ts";
import { TokenBucket } from "../../base/rate.ts";
import type { Instant } from "../../base/time.ts";

/** Attempts to connect to one public host: in a burst, and per second. A household has few engines. */
const BURST = 8;
const PER_SECOND = 0.1;
/** The same for loopback and private hosts, which may run dozens of engines of a test setup. */
const LOCAL_BURST = 64;
const LOCAL_PER_SECOND = 1;
/** Maximum number of remembered hosts: more than there are candidates. */
const MAX_HOSTS = 512;

/** Limits the attempts to connect to one host, so that peers that name its ports cannot use us to attack it. */
export class DialLimit {
  readonly #hosts = new Map<string, TokenBucket>();

  /** Counts an attempt. Returns false if it must wait. */
  take({ host }: PeerAddress, now: Instant): boolean {
    const known = this.#hosts.get(host);
    const bucket = known ?? this.#bucketFor(host);
    this.#hosts.delete(host);
    this.#hosts.set(host, bucket);
    if (this.#hosts.size > MAX_HOSTS) this.#hosts.delete(this.#hosts.keys().next().value!);
    return bucket.take(1, now);
  }

  #bucketFor(host: string): TokenBucket {
    return addressScope(host) === "global"
      ? new TokenBucket(PER_SECOND, BURST)
      : new TokenBucket(LOCAL_PER_SECOND, LOCAL_BURST);
  }
}
