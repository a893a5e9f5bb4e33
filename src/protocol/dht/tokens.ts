import { concatBytes, equalBytes, latin1Bytes } from "../../base/bytes.ts";
import type { Sha1 } from "../../base/ids.ts";
import { type Random, randomBelow } from "../../base/random.ts";
import type { Instant } from "../../base/time.ts";
import { TOKEN_SPAN_MS } from "./limits.ts";

/** Length of a token in bytes, enough against guessing within ten minutes. */
const TOKEN_BYTES = 6;

/** Tokens by which an address proves that it receives datagrams (BEP 5): a hash of the address, the target, and a
 * rotating secret. */
export class Tokens {
  readonly #sha1: Sha1;
  readonly #random: Random;
  #secret: Uint8Array;
  #last: Uint8Array;
  #madeAt: Instant | undefined;

  constructor(sha1: Sha1, random: Random) {
    this.#sha1 = sha1;
    this.#random = random;
    this.#secret = newSecret(random);
    this.#last = this.#secret;
  }

  /** Returns the token of an address for a target. */
  make(host: string, target: Uint8Array, now: Instant): Uint8Array {
    this.#rotate(now);
    return this.#tokenOf(this.#secret, host, target);
  }

  /** Whether this node issued the token to this address for this target, at most five to ten minutes ago. */
  isValid(token: Uint8Array, host: string, target: Uint8Array, now: Instant): boolean {
    this.#rotate(now);
    return [this.#secret, this.#last].some((secret) =>
      equalBytes(token, this.#tokenOf(secret, host, target)),
    );
  }

  #rotate(now: Instant): void {
    this.#madeAt ??= now;
    const passedMs = now - this.#madeAt;
    if (passedMs < TOKEN_SPAN_MS) return;
    this.#last = passedMs < 2 * TOKEN_SPAN_MS ? this.#secret : newSecret(this.#random);
    this.#secret = newSecret(this.#random);
    this.#madeAt = now;
  }

  #tokenOf(secret: Uint8Array, host: string, target: Uint8Array): Uint8Array {
    return this.#sha1(concatBytes([secret, target, latin1Bytes(host)])).slice(0, TOKEN_BYTES);
  }
}

function newSecret(random: Random): Uint8Array {
  return Uint8Array.from({ length: 20 }, () => randomBelow(random, 256));
}
