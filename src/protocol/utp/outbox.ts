/** Queue of written bytes that are not sent yet. It owns the pushed buffers. */
export class Outbox {
  #parts: Uint8Array[] = [];
  #first = 0;
  /** Bytes of the first part that are already taken. */
  #taken = 0;
  /** Number of queued bytes. */
  length = 0;

  push(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    this.#parts.push(bytes);
    this.length += bytes.length;
  }

  /** Copies the next `count` bytes to `into` at offset `at`, and removes them. At least `count` bytes must be queued. */
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
    } else if (this.#first >= MIN_COMPACTED && this.#first * 2 >= this.#parts.length) {
      this.#parts = this.#parts.slice(this.#first);
      this.#first = 0;
    }
  }
}

const EMPTY = new Uint8Array(0);
/** Fewer used entries than this are not compacted. */
const MIN_COMPACTED = 64;
