import { assert } from "../../base/assert.ts";
import { MSE_METHOD, type MseCiphers, type MseMethod } from "../../wire/mse.ts";
import type { Rc4 } from "../../wire/rc4.ts";

/** What a connection's bytes go through after its handshake. */
export class MseStream {
  readonly #encipher: Rc4 | undefined;
  readonly #decipher: Rc4;
  /** So many bytes that come are still enciphered; without end where the method is RC4. */
  #enciphered: number;

  /** `encipher` is absent where we send in the clear; `enciphered`: how much of what comes is not. */
  constructor(encipher: Rc4 | undefined, decipher: Rc4, enciphered: number) {
    this.#encipher = encipher;
    this.#decipher = decipher;
    this.#enciphered = enciphered;
  }

  /** Whether bytes pass unchanged, both ways, from now on. */
  get isClear(): boolean {
    return this.#encipher === undefined && this.#enciphered === 0;
  }

  /** Enciphers, in their place, bytes that are ours. */
  encrypt(bytes: Uint8Array): void {
    this.#encipher?.apply(bytes, bytes);
  }

  /** Deciphers what came into the head of `into`, which has room for it; it may be the same bytes. */
  decrypt(bytes: Uint8Array, into: Uint8Array): void {
    assert(into.length >= bytes.length, "no room for what is deciphered");
    const enciphered = Math.min(bytes.length, this.#enciphered);
    this.#decipher.apply(bytes.subarray(0, enciphered), into);
    this.#enciphered -= enciphered;
    if (enciphered < bytes.length && into !== bytes) into.set(bytes.subarray(enciphered), enciphered);
  }
}

/** The stream of a handshake that stands. What goes along with it, `initialBytes` of what comes, is enciphered whatever
 * method is chosen for what follows. */
export function mseStream(method: MseMethod, { ours, theirs }: MseCiphers, initialBytes: number): MseStream {
  return method === MSE_METHOD.rc4
    ? new MseStream(ours, theirs, Number.POSITIVE_INFINITY)
    : new MseStream(undefined, theirs, initialBytes);
}
