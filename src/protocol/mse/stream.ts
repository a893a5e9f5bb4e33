import { assert } from "../../base/assert.ts";
import { MSE_METHOD, type MseCiphers, type MseMethod } from "../../wire/peer/mse.ts";
import type { Rc4 } from "../../wire/peer/rc4.ts";

/** Encrypts and decrypts the bytes of a connection after its handshake. */
export class MseStream {
  readonly #encryption: Rc4 | undefined;
  readonly #decryption: Rc4;
  /** Received bytes that are still encrypted; infinite if the method is RC4. */
  #encryptedLeft: number;

  /** `encryption` is absent if bytes are sent in plain text; the first `encryptedBytes` received bytes are encrypted. */
  constructor(encryption: Rc4 | undefined, decryption: Rc4, encryptedBytes: number) {
    this.#encryption = encryption;
    this.#decryption = decryption;
    this.#encryptedLeft = encryptedBytes;
  }

  /** Whether bytes pass unchanged in both directions from now on. */
  get isClear(): boolean {
    return this.#encryption === undefined && this.#encryptedLeft === 0;
  }

  /** Encrypts bytes in place. */
  encrypt(bytes: Uint8Array): void {
    this.#encryption?.apply(bytes, bytes);
  }

  /** Decrypts received bytes to the start of `into`, which is at least as long, and may be the same array. */
  decrypt(bytes: Uint8Array, into: Uint8Array): void {
    assert(into.length >= bytes.length, "the target is too short for the decrypted bytes");
    const encrypted = Math.min(bytes.length, this.#encryptedLeft);
    this.#decryption.apply(bytes.subarray(0, encrypted), into);
    this.#encryptedLeft -= encrypted;
    if (encrypted < bytes.length && into !== bytes) into.set(bytes.subarray(encrypted), encrypted);
  }
}

/** Returns the stream of a completed handshake. The `initialBytes` received with the handshake are encrypted regardless of the
 * method. */
export function mseStream(method: MseMethod, { ours, theirs }: MseCiphers, initialBytes: number): MseStream {
  return method === MSE_METHOD.rc4
    ? new MseStream(ours, theirs, Number.POSITIVE_INFINITY)
    : new MseStream(undefined, theirs, initialBytes);
}
