import { concatBytes, equalBytes, latin1Bytes } from "../../base/bytes.ts";
import type { Sha1 } from "../../base/ids.ts";
import { type Random, randomBelow } from "../../base/random.ts";
import type { Instant } from "../../base/time.ts";
import { TOKEN_SPAN_MS } from "./limits.ts";

/** Enough against guessing within ten minutes. */
const TOKEN_BYTES = 6;

/** Tokens by which an address shows that it hears us (BEP 5): made of the address, the target, and a secret that changes. */
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

  /** The token of an address for a target. */
  make(host: string, target: Uint8Array, now: Instant): Uint8Array {
    this.#turn(now);
    return this.#tokenOf(this.#secret, host, target);
  }

  /** Whether a token is one that we gave this address for this target, five to ten minutes ago at most. */
  isValid(token: Uint8Array, host: string, target: Uint8Array, now: Instant): boolean {
    this.#turn(now);
    return [this.#secret, this.#last].some((secret) =>
      equalBytes(token, this.#tokenOf(secret, host, target)),
    );
  }

  #turn(now: Instant): void {
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
