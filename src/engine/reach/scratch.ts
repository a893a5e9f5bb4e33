/** Reads of a socket are no larger. */
const SCRATCH_BYTES = 64 * 1024;

/** Memory that one call at a time uses for what it hands on, as sockets do with their read buffer. */
export class Scratch {
  readonly #bytes = new Uint8Array(SCRATCH_BYTES);
  #isLent = false;

  /** Calls `use` with memory of `length` bytes, contents undefined, that is its own until it returns. */
  lend(length: number, use: (bytes: Uint8Array) => void): void {
    if (this.#isLent || length > SCRATCH_BYTES) {
      use(new Uint8Array(length));
      return;
    }
    this.#isLent = true;
    try {
      use(this.#bytes.subarray(0, length));
    } finally {
      this.#isLent = false;
    }
  }
}
