const STATES = 256;

/**
 * The stream cipher RC4, which MSE uses to obfuscate the protocol. RC4 is broken; nothing relies on its secrecy.
 */
export class Rc4 {
  /** Words, not bytes: a processor forwards a stored word to the next load sooner, which is 1.5 times as fast. */
  readonly #state = new Int32Array(STATES);
  #i = 0;
  #j = 0;

  /** @param key 1 to 256 bytes. */
  constructor(key: Uint8Array) {
    const state = this.#state;
    for (let i = 0; i < STATES; i++) state[i] = i;
    for (let i = 0, j = 0; i < STATES; i++) {
      const value = state[i]!;
      j = (j + value + key[i % key.length]!) & 0xff;
      state[i] = state[j]!;
      state[j] = value;
    }
  }

  /** Encrypts or decrypts `from` into the start of `into`, which may be the same array. */
  apply(from: Uint8Array, into: Uint8Array): void {
    const state = this.#state;
    const { length } = from;
    let [i, j] = [this.#i, this.#j];
    for (let at = 0; at < length; at++) {
      i = (i + 1) & 0xff;
      const a = state[i]!;
      j = (j + a) & 0xff;
      const b = state[j]!;
      state[i] = b;
      state[j] = a;
      into[at] = from[at]! ^ state[(a + b) & 0xff]!;
    }
    this.#i = i;
    this.#j = j;
  }

  /** Skips the next `bytes` of the key stream. */
  discard(bytes: number): void {
    const discarded = new Uint8Array(bytes);
    this.apply(discarded, discarded);
  }
}
