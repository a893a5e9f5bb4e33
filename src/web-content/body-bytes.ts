/** The bytes of a response body read so far. Reads only as much as its callers need. */
export class BodyBytes {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  #bytes = new Uint8Array(16 * 1024);
  #length = 0;
  #isEnded = false;

  constructor(body: ReadableStream<Uint8Array>) {
    this.#reader = body.getReader();
  }

  /** Returns all bytes read so far: at least `minBytes`, or the whole body if it is shorter. */
  async head(minBytes: number): Promise<Uint8Array<ArrayBuffer>> {
    while (this.#length < minBytes && !this.#isEnded) {
      const { done, value } = await this.#reader.read();
      if (done) this.#isEnded = true;
      else this.#append(value);
    }
    return this.#bytes.subarray(0, this.#length);
  }

  /** Returns a copy of the whole body, or undefined if it is larger than `limitBytes`. */
  async whole(limitBytes: number): Promise<Uint8Array<ArrayBuffer> | undefined> {
    const bytes = await this.head(limitBytes + 1);
    return bytes.length <= limitBytes ? bytes.slice() : undefined;
  }

  /** Cancels the rest of the body. Ignores errors: the rest is not needed. */
  async cancel(): Promise<void> {
    await this.#reader.cancel().catch(() => {});
  }

  #append(chunk: Uint8Array): void {
    const length = this.#length + chunk.length;
    if (length > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(length, 2 * this.#bytes.length));
      larger.set(this.#bytes.subarray(0, this.#length));
      this.#bytes = larger;
    }
    this.#bytes.set(chunk, this.#length);
    this.#length = length;
  }
}
