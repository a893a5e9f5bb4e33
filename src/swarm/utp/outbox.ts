/** Bytes that were written and have not gone out yet. It owns what it is given. */
export class Outbox {
  #parts: Uint8Array[] = [];
  #first = 0;
  /** How much of the first part has gone. */
  #taken = 0;
  /** How many bytes wait. */
  length = 0;

  push(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    this.#parts.push(bytes);
    this.length += bytes.length;
  }

  /** Moves the next `count` bytes, which must be there, to `into` from `at` on. */
  take(count: number, into: Uint8Array, at: number): void {
    let filled = 0;
    while (filled < count) {
      const part = this.#parts[this.#first]!;
      const size = Math.min(part.length - this.#taken, count - filled);
      into.set(part.subarray(this.#taken, this.#taken + size), at + filled);
      filled += size;
      this.#taken += size;
      if (this.#taken === part.length) this.#next();
    }
    this.length -= count;
  }

  clear(): void {
    this.#parts = [];
    this.#first = this.#taken = this.length = 0;
  }

  #next(): void {
    this.#taken = 0;
    this.#parts[this.#first++] = EMPTY;
    if (this.#first === this.#parts.length) {
      this.#parts = [];
      this.#first = 0;
    } else if (this.#first >= MANY && this.#first * 2 >= this.#parts.length) {
      this.#parts = this.#parts.slice(this.#first);
      this.#first = 0;
    }
  }
}

const EMPTY = new Uint8Array(0);
/** Fewer places that are done with are not worth moving the rest. */
const MANY = 64;
